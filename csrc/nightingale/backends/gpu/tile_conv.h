#pragma once

#include "nightingale/ops/streaming_conv.h"

// The two ways in which kernels compute a streaming convolution.

namespace nightingale::gpu {

struct SpanConv {
  const ops::FrameSpan& x;
  const ops::Filters& filters;
  const ops::StreamingConv& conv;
  int keep; // input frames to return in `kept`, from the end
};

bool fits_tile_conv(const SpanConv& work);

// The convolution without its Snake of the input in one launch, without laying
// out windows. Frames and filters are rounded to float16 for the products.
ops::StreamOutput tile_conv(const SpanConv& work, mx::Stream s);

// By windows that a kernel lays out and MLX's matmul multiplies, in parts whose
// windows have at most `most_window_bytes`.
ops::StreamOutput
window_conv(const SpanConv& work, int64_t most_window_bytes, mx::Stream s);

} // namespace nightingale::gpu
