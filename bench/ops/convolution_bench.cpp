#include <string>

#include "arrays.h"
#include "nightingale/ops/convolution.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

struct Sizes {
  int batch, rows, channels, filters, taps;
};

void conv1d(
    benchmark::State& state,
    Sizes n,
    const ops::Conv1d& shape,
    mx::Dtype dtype,
    const ops::Epilogue& epilogue) {
  auto x = warm({n.batch, n.rows, n.channels}, dtype);
  Cold weights({n.filters, n.taps, n.channels / shape.groups}, dtype);
  double size = double(n.filters) * n.taps * n.channels / shape.groups;
  int results = n.batch * shape.output_rows(n.rows, n.taps);
  double activations =
      double(n.batch) * n.rows * n.channels + double(results) * n.filters;
  Work work{(size + activations) * mx::size_of(dtype), 2.0 * size * results};
  run(state, work, [&] {
    return ops::conv1d(x, weights.next(), {shape, epilogue}, cpu_stream());
  });
}

void add(
    const std::string& name,
    Sizes n,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Dtype dtype = mx::float32) {
  benchmark::RegisterBenchmark(
      ("conv1d/" + name).c_str(),
      [=](benchmark::State& state) {
        conv1d(state, n, shape, dtype, epilogue);
      })
      ->UseRealTime();
}

ops::Conv1d centred(int taps, int dilation) {
  int pad = (taps - 1) * dilation / 2;
  return {.dilation = dilation, .pad_left = pad, .pad_right = pad};
}

// The residual blocks of the vocoder, for 200 frames of mel.
void add_vocoder(int rows, int channels) {
  auto bias = warm({channels}), residual = warm({1, rows, channels});
  for (int taps : {3, 7, 11}) {
    Sizes n{1, rows, channels, channels, taps};
    std::string name =
        "vocoder " + std::to_string(taps) + "x" + std::to_string(channels);
    for (int dilation : {1, 3, 5}) {
      add(name + " dilation " + std::to_string(dilation) + " snake",
          n,
          centred(taps, dilation),
          {.bias = bias, .snake = bias});
    }
    add(name + " residual",
        n,
        centred(taps, 1),
        {.bias = bias, .residual = residual});
  }
}

const bool added = [] {
  auto bias = warm({256});
  for (mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
    std::string type = dtype == mx::float32 ? "/f32" : "/bf16";
    add("flow 3x256" + type,
        {2, 700, 256, 256, 3},
        {.pad_left = 2},
        {.bias = bias},
        dtype);
    add("3x512" + type, {1, 500, 512, 512, 3}, {.pad_left = 2}, {}, dtype);
  }
  add_vocoder(1600, 256);
  add_vocoder(8000, 128);
  add_vocoder(24001, 64);
  add("vocoder out", {1, 24001, 64, 18, 7}, centred(7, 1), {});
  add("source 30x256",
      {1, 24001, 18, 256, 30},
      {.stride = 15, .pad_left = 7, .pad_right = 8},
      {});
  add("source 6x128",
      {1, 24001, 18, 128, 6},
      {.stride = 3, .pad_left = 1, .pad_right = 2},
      {});
  add("source 1x64", {1, 24001, 18, 64, 1}, {}, {});
  add("depthwise 7x512",
      {1, 500, 512, 512, 7},
      {.groups = 512, .pad_left = 3, .pad_right = 3},
      {});
  add("depthwise 31x1280",
      {1, 500, 1280, 1280, 31},
      {.groups = 1280, .pad_left = 15, .pad_right = 15},
      {});
  return true;
}();

} // namespace

} // namespace nightingale::bench
