#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/layers.h"
#include "nightingale/ops/streaming_conv.h"

// Layers that process a signal in chunks of frames and give the same results as
// for the whole signal, each as soon as its input is there. The state of a
// layer is a plain value that the caller keeps.

namespace nightingale {

// [1, n, C] with n above 0, or nothing.
using Frames = std::optional<mx::array>;

// Frames kept from earlier chunks, then the new ones.
using PendingFrames = std::optional<ops::FrameSpan>;

PendingFrames join(const Frames& kept, const Frames& fresh, mx::Stream s);
int frame_count(const PendingFrames& frames);
Frames to_array(const PendingFrames& frames, mx::Stream s);

// How filters are stored: quantized to `bits` if that is not 0; else as floats
// or, where a GPU multiplies with tiles, as float16.
struct FilterFormat {
  int bits = 0;
  bool halves = false;
};

// Padding that makes as many frames as there are.
ops::Conv1d same_padding(int taps, int dilation = 1);

// A convolution with its bias and the padding of the whole signal.
struct Conv {
  ops::Filters filters;
  mx::array b;
  ops::Conv1d shape;

  // expected: [O, C, K]; halves: as in FilterFormat
  Conv(
      const LayerReader& reader,
      const std::string& layer,
      const mx::Shape& expected,
      const ops::Conv1d& shape,
      bool halves = false);
};

struct ConvState {
  Frames kept; // input frames that later results need
  bool started = false;
  int padding = 0; // zeros before `kept`, once started
  int first_kept = 0; // index in the signal of the first frame of `kept`
  int results = 0; // so far
};

// A chunk of input, and whether it is the last of the signal.
struct Chunk {
  PendingFrames frames; // with those kept before
  bool last;
};

// The results that are ready. Only `snake`, the epilogue's activation and Snake
// and the residual of `conv` are read: the rest is the layer's.
Frames forward(
    const Conv& layer,
    ConvState& state,
    const Chunk& chunk,
    ops::StreamingConv conv,
    mx::Stream s);

inline Frames forward(
    const Conv& layer,
    ConvState& state,
    const Frames& fresh,
    bool last,
    mx::Stream s) {
  return forward(layer, state, {join(state.kept, fresh, s), last}, {}, s);
}

// A transposed convolution that makes `stride` frames of each.
struct Upsampling {
  ops::TransposedFilters filters;
  int stride;
  int trim; // frames dropped from either end of the whole result

  // expected: [C, O, K]
  Upsampling(
      const LayerReader& reader,
      const std::string& layer,
      const mx::Shape& expected,
      int stride);
};

struct UpsamplingState {
  Frames kept;
  bool started = false; // the first frame of `kept` has been upsampled already
};

Frames forward(
    const Upsampling& layer,
    UpsamplingState& state,
    const Frames& fresh,
    bool last,
    mx::Stream s);

constexpr std::array<int, 3> kDilations{1, 3, 5};

struct ResBlockState {
  struct Layer {
    ConvState dilated, plain;
  };
  std::array<Layer, kDilations.size()> layers;
};

// Three residual pairs of convolutions, each preceded by Snake.
class ResBlock {
 public:
  ResBlock(const LayerReader& block, int channels, int taps, bool halves);

  Frames forward(ResBlockState& state, Frames x, bool last, mx::Stream s) const;

 private:
  struct Layer {
    mx::array dilated_alpha;
    Conv dilated;
    mx::array plain_alpha;
    Conv plain;
  };
  std::vector<Layer> layers_;
};

} // namespace nightingale
