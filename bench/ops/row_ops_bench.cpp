// The ops that work row by row, on what the op before has left in cache: two
// rows in a decoding step, 400 in a prefill.

#include "arrays.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/norm.h"
#include "nightingale/ops/rotary.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

constexpr int kHidden = 1024, kFfn = 4096;

void rms_norm(benchmark::State& state) {
  int rows = state.range(0);
  auto x = warm({1, rows, kHidden}), w = warm({kHidden});
  double elements = double(rows) * kHidden;
  Work work{2 * elements * sizeof(float), 4 * elements};
  run(state, work, [&] { return ops::rms_norm(x, w, 1e-5f, cpu_stream()); });
}

void layer_norm(benchmark::State& state) {
  int rows = state.range(0);
  auto x = warm({1, rows, kHidden}), w = warm({kHidden});
  double elements = double(rows) * kHidden;
  Work work{2 * elements * sizeof(float), 8 * elements};
  run(state, work, [&] {
    return ops::layer_norm(x, w, w, 1e-5f, cpu_stream());
  });
}

void swiglu(benchmark::State& state) {
  int rows = state.range(0);
  auto x = warm({1, rows, 2 * kFfn});
  double elements = double(rows) * kFfn;
  Work work{3 * elements * sizeof(float), 20 * elements};
  run(state, work, [&] { return ops::swiglu(x, cpu_stream()); });
}

void rotary(benchmark::State& state) {
  int length = state.range(0);
  auto x = warm({2, length, kHidden});
  auto frequencies = ops::rotary_frequencies(64, {});
  double elements = 2.0 * length * kHidden;
  Work work{2 * elements * sizeof(float), 3 * elements};
  run(state, work, [&] {
    return ops::rotary(x, frequencies, 100, cpu_stream());
  });
}

void embedding(benchmark::State& state) {
  auto table = warm({8194, kHidden}, mx::float16);
  mx::array ids({4321});
  Work work{kHidden * 6.0, 0.0};
  run(state, work, [&] { return ops::embedding(table, ids, cpu_stream()); });
}

BENCHMARK(rms_norm)->Arg(2)->Arg(400)->UseRealTime();
BENCHMARK(layer_norm)->Arg(2)->Arg(400)->UseRealTime();
BENCHMARK(swiglu)->Arg(2)->Arg(400)->UseRealTime();
BENCHMARK(rotary)->Arg(1)->Arg(200)->UseRealTime();
BENCHMARK(embedding)->UseRealTime();

} // namespace

} // namespace nightingale::bench
