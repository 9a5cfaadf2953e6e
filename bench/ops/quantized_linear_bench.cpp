#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arrays.h"
#include "nightingale/ops/linear.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

// 1 GB of quantized matrices side by side, as Cold has floats.
class ColdQuantized {
 public:
  ColdQuantized(int outer, int inner, int bits) {
    auto quantized =
        ops::Matrix::quantized(warm({outer, inner}), bits, cpu_stream())
            .unpacked();
    size_t nbytes = 0;
    while (nbytes < size_t(1) << 30) {
      matrices_.push_back(ops::Matrix::from_quantized(
          quantized.quantized,
          quantized.scales,
          quantized.biases,
          bits,
          cpu_stream()));
      nbytes += matrices_.back().nbytes();
    }
  }

  const ops::Matrix& next() {
    at_ = (at_ + 1) % matrices_.size();
    return matrices_[at_];
  }

 private:
  std::vector<ops::Matrix> matrices_;
  size_t at_ = 0;
};

void quantized_linear(
    benchmark::State& state,
    int rows,
    int outer,
    int inner,
    int bits) {
  auto x = warm({1, rows, inner});
  ColdQuantized weights(outer, inner, bits);
  double activations = double(rows) * (inner + outer) * sizeof(float);
  Work work{weights.next().nbytes() + activations, 2.0 * outer * inner * rows};
  run(state, work, [&] {
    return ops::linear(x, weights.next(), {}, cpu_stream());
  });
}

void float_linear(
    benchmark::State& state,
    int rows,
    int outer,
    int inner,
    mx::Dtype dtype) {
  auto x = warm({1, rows, inner});
  Cold weights({outer, inner}, dtype);
  double activations = double(rows) * (inner + outer) * sizeof(float);
  Work work{
      double(outer) * inner * mx::size_of(dtype) + activations,
      2.0 * outer * inner * rows};
  run(state, work, [&] {
    return ops::linear(x, weights.next(), {}, cpu_stream());
  });
}

template <typename F>
void add(int rows, int outer, int inner, const char* type, F body) {
  std::string name = "quantized/rows:" + std::to_string(rows) + "/" +
      std::to_string(outer) + "x" + std::to_string(inner) + "/" + type;
  benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime();
}

const bool added = [] {
  // qkv, attention out, gate and up, down, speech head.
  const std::pair<int, int> sizes[] = {
      {3072, 1024}, {1024, 1024}, {8192, 1024}, {1024, 4096}, {8194, 1024}};
  // A decoding step, one that checks four drafted tokens, a prompt.
  for (int rows : {2, 10, 300}) {
    for (auto [outer, inner] : sizes) {
      auto floats = [=, o = outer, i = inner](mx::Dtype dtype) {
        return [=](benchmark::State& state) {
          float_linear(state, rows, o, i, dtype);
        };
      };
      auto quantized = [=, o = outer, i = inner](int bits) {
        return [=](benchmark::State& state) {
          quantized_linear(state, rows, o, i, bits);
        };
      };
      add(rows, outer, inner, "f32", floats(mx::float32));
      add(rows, outer, inner, "f16", floats(mx::float16));
      add(rows, outer, inner, "int8", quantized(8));
      add(rows, outer, inner, "int4", quantized(4));
    }
  }
  return true;
}();

} // namespace

} // namespace nightingale::bench
