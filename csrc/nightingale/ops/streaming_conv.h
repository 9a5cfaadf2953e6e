#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "nightingale/ops/convolution.h"

// Ops on rows that come piece by piece: each reads what was kept of earlier
// pieces and the new one behind it, and gives back what is to be kept.

namespace nightingale::ops {

// Rows of `x`, [B, T, C], behind those of `before`, [B, P, C], if there are
// any.
struct FrameSpan {
  std::optional<mx::array> before;
  mx::array x;

  int count() const {
    return (before ? before->shape(1) : 0) + x.shape(1);
  }
};

// `first`, then `second`, one of which may be missing. On the CPU they are put
// into one array; a GPU's kernels read them where they are.
FrameSpan joined(
    const std::optional<mx::array>& first,
    const std::optional<mx::array>& second,
    mx::Stream s);

// The same as one array.
mx::array whole(const FrameSpan& rows, mx::Stream s);

// Rows [begin, end), holding on to no others; nothing where that is empty.
std::optional<mx::array>
cut(const mx::array& rows, int begin, int end, mx::Stream s);

// A result, and the rows that later results still need, if there are any.
struct StreamOutput {
  mx::array y;
  std::optional<mx::array> kept;
};

// What a convolution filters with, as every backend takes it: made once.
struct Filters {
  Kernel w; // [O, K, C]
  std::optional<mx::array> columns; // floats again, as [K * C, O]
  // Rounded to float16, [O, K * C], for kernels that multiply by tiles.
  std::optional<mx::array> halves = std::nullopt;

  // halves: whether products may be of such numbers
  static Filters of(const Kernel& w, mx::Stream s, bool halves = false);
};

struct StreamingConv {
  Conv1d shape = {};
  std::optional<mx::array> snake = std::nullopt; // of the rows; alpha, [C]
  Epilogue epilogue = {};
  // Added in place of the epilogue's residual: rows from `residual_begin` on.
  std::optional<FrameSpan> residual = std::nullopt;
  int residual_begin = 0;
  bool keep = true; // whether there will be later results

  // The first row that a result after `results` of them needs.
  int first_kept(int results) const {
    return std::max(0, results * shape.stride - shape.pad_left);
  }
};

// conv1d of rows that give at least one result. x: [1, T, C]
StreamOutput conv1d(
    const FrameSpan& x,
    const Filters& filters,
    const StreamingConv& conv,
    mx::Stream s);

// conv_transpose1d, and the last `keep` rows of x.
StreamOutput conv_transpose1d(
    const FrameSpan& x,
    const mx::array& w,
    const mx::array& bias,
    const ConvTranspose1d& shape,
    int keep,
    mx::Stream s);

// The first `count` rows of all added up, and of each the rest.
struct Merged {
  mx::array y;
  std::vector<std::optional<mx::array>> kept;
};

// parts: two or three, each [1, T, C]
Merged add_rows(const std::vector<FrameSpan>& parts, int count, mx::Stream s);

// leaky_relu, by a slope above 0, of their mean.
Merged mean_rows(
    const std::vector<FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s);

// The frames whose middles are every fourth sample. `first` and `last` say that
// x begins, or ends, where the whole does: there it is mirrored. x: [1, n, 1],
// enough for one frame → [1, frames, 18], as stft gives them
StreamOutput
centred_stft(const FrameSpan& x, bool first, bool last, mx::Stream s);

// istft of the polar_spectrum of x, within [-limit, limit]. x: [1, N, 18],
// enough for one hop → [1, samples]
StreamOutput
waveform(const FrameSpan& x, bool first, bool last, float limit, mx::Stream s);

} // namespace nightingale::ops
