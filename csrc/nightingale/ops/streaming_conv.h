#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "nightingale/ops/convolution.h"

// Convolutions over a stream of frames. Each call takes the frames that earlier
// calls returned in `kept`, followed by new ones.

namespace nightingale::ops {

// The frames of `before`, [B, P, C], if any, followed by those of `x`,
// [B, T, C].
struct FrameSpan {
  std::optional<mx::array> before;
  mx::array x;

  int count() const {
    return (before ? before->shape(1) : 0) + x.shape(1);
  }
};

// `first`, then `second`, one of which may be missing. On the CPU they are
// concatenated; GPU kernels read both arrays.
FrameSpan join_frames(
    const std::optional<mx::array>& first,
    const std::optional<mx::array>& second,
    mx::Stream s);

mx::array to_array(const FrameSpan& frames, mx::Stream s);

// Frames [begin, end) in memory of their own, or nothing if that is empty.
std::optional<mx::array>
slice_frames(const mx::array& frames, int begin, int end, mx::Stream s);

struct StreamOutput {
  mx::array y;
  std::optional<mx::array> kept; // input frames that later results need
};

// The weights of a convolution in the layouts that its backend reads.
struct Filters {
  Kernel w; // [O, K, C]
  std::optional<mx::array> columns = std::nullopt; // floats: [K * C, O]
  std::optional<mx::array> halves = std::nullopt; // float16: [O, K * C]
};

// halves: whether products may be computed in float16
Filters make_filters(const Kernel& w, bool halves, mx::Stream s);

struct StreamingConv {
  Conv1d shape = {};
  // Snake of the input frames before the convolution; alpha, [C]
  std::optional<mx::array> snake = std::nullopt;
  Epilogue epilogue = {};
  // Used instead of the epilogue's residual: its frames from `residual_begin`.
  std::optional<FrameSpan> residual = std::nullopt;
  int residual_begin = 0;
  bool keep = true; // whether there will be later results

  // The first frame that a result after `results` of them needs.
  int first_kept(int results) const {
    return std::max(0, results * shape.stride - shape.pad_left);
  }
};

// conv1d of frames that give at least one result. x: [1, T, C]
StreamOutput streaming_conv1d(
    const FrameSpan& x,
    const Filters& filters,
    const StreamingConv& conv,
    mx::Stream s);

struct StreamingConvTranspose {
  ConvTranspose1d shape;
  int keep = 0; // input frames to return in `kept`, from the end
};

StreamOutput streaming_conv_transpose1d(
    const FrameSpan& x,
    const TransposedFilters& filters,
    const StreamingConvTranspose& conv,
    mx::Stream s);

struct MergedFrames {
  mx::array y;
  std::vector<std::optional<mx::array>> kept; // the rest of each input
};

// The sum of the first `count` frames of two or three inputs, each [1, T, C].
MergedFrames
add_frames(const std::vector<FrameSpan>& parts, int count, mx::Stream s);

// leaky_relu of the mean instead of the sum; slope above 0.
MergedFrames mean_frames(
    const std::vector<FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s);

} // namespace nightingale::ops
