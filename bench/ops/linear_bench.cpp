#include <string>
#include <utility>

#include "arrays.h"
#include "nightingale/ops/linear.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

// One linear of T3: the weights come from memory, the rows from cache.
void linear(
    benchmark::State& state,
    int rows,
    int outer,
    int inner,
    mx::Dtype dtype) {
  auto x = warm({1, rows, inner});
  Cold weights({outer, inner}, dtype);
  double size = double(outer) * inner;
  double activations = double(rows) * (inner + outer) * sizeof(float);
  Work work{size * mx::size_of(dtype) + activations, 2.0 * size * rows};
  run(state, work, [&] {
    return ops::linear(x, weights.next(), cpu_stream());
  });
}

std::string type_name(mx::Dtype dtype) {
  return dtype == mx::float32 ? "f32" : dtype == mx::float16 ? "f16" : "bf16";
}

void add(int rows, int outer, int inner, mx::Dtype dtype) {
  std::string name = "linear/rows:" + std::to_string(rows) + "/" +
      std::to_string(outer) + "x" + std::to_string(inner) + "/" +
      type_name(dtype);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    linear(state, rows, outer, inner, dtype);
  })->UseRealTime();
}

const bool added = [] {
  // qkv, attention out, gate and up, down, speech head.
  const std::pair<int, int> sizes[] = {
      {3072, 1024}, {1024, 1024}, {8192, 1024}, {1024, 4096}, {8194, 1024}};
  for (mx::Dtype dtype : {mx::float32, mx::float16, mx::bfloat16}) {
    for (auto [outer, inner] : sizes) {
      add(2, outer, inner, dtype); // a decoding step of a guidance pair
    }
    for (int rows : {200, 1400}) {
      add(rows, 3072, 1024, dtype);
      add(rows, 1024, 4096, dtype);
    }
  }
  return true;
}();

} // namespace

} // namespace nightingale::bench
