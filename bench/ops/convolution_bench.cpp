#include "arrays.h"
#include "nightingale/ops/convolution.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

void conv1d(
    benchmark::State& state,
    int taps,
    int channels,
    const ops::Conv1d& shape) {
  int rows = state.range(0);
  auto x = warm({1, rows, channels});
  Cold weights({channels, taps, channels / shape.groups}, mx::float32);
  double size = double(channels) * taps * channels / shape.groups;
  double activations = 2.0 * rows * channels;
  Work work{(size + activations) * sizeof(float), 2.0 * size * rows};
  run(state, work, [&] {
    return ops::conv1d(x, weights.next(), shape, cpu_stream());
  });
}

constexpr ops::Conv1d kCausal3{.pad_left = 2};
constexpr ops::Conv1d kDepthwise7{.groups = 512, .pad_left = 3, .pad_right = 3};

BENCHMARK_CAPTURE(conv1d, 3x512x512, 3, 512, kCausal3)->Arg(500)->UseRealTime();
BENCHMARK_CAPTURE(conv1d, depthwise 7x512, 7, 512, kDepthwise7)
    ->Arg(500)
    ->UseRealTime();

} // namespace

} // namespace nightingale::bench
