// The ops that work row by row, on what the op before has left in cache: two
// rows in a decoding step, 400 in a prefill; the flow's and the vocoder's for
// 4 s of speech.

#include "arrays.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/embedding.h"
#include "nightingale/ops/norm.h"
#include "nightingale/ops/ode.h"
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
  run(state, work, [&] { return ops::rms_norm(x, {w, 1e-5f}, cpu_stream()); });
}

void layer_norm(benchmark::State& state) {
  int rows = state.range(0);
  auto x = warm({1, rows, kHidden}), w = warm({kHidden});
  double elements = double(rows) * kHidden;
  Work work{2 * elements * sizeof(float), 8 * elements};
  run(state, work, [&] {
    return ops::layer_norm(x, {w, w, 1e-5f}, mx::float32, cpu_stream());
  });
}

// A frame of the flow's U-Net.
void norm_mish(benchmark::State& state, mx::Dtype dtype) {
  constexpr int rows = 2000, channels = 256;
  auto x = warm({2, rows / 2, channels}, dtype), w = warm({channels});
  double elements = double(rows) * channels;
  Work work{2 * elements * mx::size_of(dtype), 30 * elements};
  run(state, work, [&] {
    return ops::norm_mish(x, {w, w, 1e-5f}, w, dtype, cpu_stream());
  });
}

void gelu(benchmark::State& state, mx::Dtype dtype) {
  auto x = warm({2, 1000, 1024}, dtype);
  double elements = x.size();
  Work work{2 * elements * mx::size_of(dtype), 30 * elements};
  run(state, work, [&] {
    return ops::activate(x, ops::Activation::gelu, cpu_stream());
  });
}

void snake(benchmark::State& state) {
  auto x = warm({1, 8000, 128}), alpha = warm({128});
  double elements = x.size();
  Work work{2 * elements * sizeof(float), 15 * elements};
  run(state, work, [&] { return ops::snake(x, alpha, cpu_stream()); });
}

void cast(benchmark::State& state) {
  auto x = warm({2, 1000, 1024});
  double elements = x.size();
  Work work{elements * 6, elements};
  run(state, work, [&] { return ops::cast(x, mx::bfloat16, cpu_stream()); });
}

void euler_step(benchmark::State& state) {
  ops::OdeState flow{warm({1, 1000, 80}), warm({2, 1000, 320})};
  auto v = warm({2, 1000, 80});
  double elements = flow.x.size();
  // The state and both velocities in, the state and two rows of input out.
  Work work{6 * elements * sizeof(float), 5 * elements};
  run(state, work, [&] {
    flow = ops::euler_step(flow, v, {0.7f, 0.1f}, cpu_stream());
    mx::eval(flow.results());
    return flow.x;
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
BENCHMARK_CAPTURE(norm_mish, float32, mx::float32)->UseRealTime();
BENCHMARK_CAPTURE(norm_mish, bfloat16, mx::bfloat16)->UseRealTime();
BENCHMARK_CAPTURE(gelu, float32, mx::float32)->UseRealTime();
BENCHMARK_CAPTURE(gelu, bfloat16, mx::bfloat16)->UseRealTime();
BENCHMARK(snake)->UseRealTime();
BENCHMARK(cast)->UseRealTime();
BENCHMARK(euler_step)->UseRealTime();
BENCHMARK(swiglu)->Arg(2)->Arg(400)->UseRealTime();
BENCHMARK(rotary)->Arg(1)->Arg(200)->UseRealTime();
BENCHMARK(embedding)->UseRealTime();

} // namespace

} // namespace nightingale::bench
