#include <string>
#include <utility>

#include "arrays.h"
#include "nightingale/ops/linear.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

// One linear: the weights come from memory, the rows from cache.
void linear(
    benchmark::State& state,
    int rows,
    int outer,
    int inner,
    mx::Dtype rows_dtype,
    mx::Dtype dtype,
    const ops::Epilogue& epilogue) {
  auto x = warm({1, rows, inner}, rows_dtype);
  Cold weights({outer, inner}, dtype);
  double size = double(outer) * inner;
  double activations = double(rows) * (inner + outer) * mx::size_of(rows_dtype);
  Work work{size * mx::size_of(dtype) + activations, 2.0 * size * rows};
  run(state, work, [&] {
    return ops::linear(x, weights.next(), epilogue, cpu_stream());
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
    linear(state, rows, outer, inner, mx::float32, dtype, {});
  })->UseRealTime();
}

// A linear of the flow's transformer: 700 frames of a guidance pair.
void add_flow(
    const std::string& name,
    int outer,
    int inner,
    mx::Dtype dtype,
    const ops::Epilogue& epilogue) {
  benchmark::RegisterBenchmark(
      ("linear/flow " + name + "/" + type_name(dtype)).c_str(),
      [=](benchmark::State& state) {
        linear(state, 1400, outer, inner, dtype, dtype, epilogue);
      })
      ->UseRealTime();
}

void add_flow_linears(mx::Dtype dtype) {
  auto bias = [](int columns) { return warm({columns}); };
  auto residual = warm({1, 1400, 256});
  add_flow("qkv", 1536, 256, dtype, {});
  add_flow("out", 256, 512, dtype, {.bias = bias(256), .residual = residual});
  add_flow(
      "up",
      1024,
      256,
      dtype,
      {.bias = bias(1024), .activation = ops::Activation::gelu});
  add_flow("down", 256, 1024, dtype, {.bias = bias(256), .residual = residual});
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
  add_flow_linears(mx::float32);
  add_flow_linears(mx::bfloat16);
  return true;
}();

} // namespace

} // namespace nightingale::bench
