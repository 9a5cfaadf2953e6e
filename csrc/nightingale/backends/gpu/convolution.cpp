#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

// unfold.metal packs these sizes into few bits.
constexpr int kMostChannels = 1 << 15;

bool can_use_unfold(
    const mx::array& x,
    const ops::Kernel& w,
    const ops::Conv1d& shape,
    mx::Stream s) {
  bool fits = shape.groups == 1 && shape.stride < 1024 &&
      shape.dilation < 1024 && w.taps < 2048 && w.channels() < kMostChannels;
  return has_kernels(s) && is_device_array(x) && fits &&
      x.dtype() == w.matrix.w.dtype() &&
      shape.output_rows(x.shape(1), w.taps) > 0;
}

bool can_use_overlap(
    const mx::array& x,
    const mx::array& w,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  bool fits = shape.stride < 1024 && w.shape(1) < 1024 &&
      shape.trim_left < 2048 && w.shape(2) < kMostChannels;
  return has_kernels(s) && is_device_array(x) && fits &&
      x.dtype() == w.dtype() && shape.output_rows(x.shape(1), w.shape(1)) > 0;
}

} // namespace

mx::array conv1d(
    const mx::array& x,
    const ops::Kernel& w,
    const ops::ConvOptions& options,
    mx::Stream s) {
  if (w.is_quantized()) {
    throw Error("quantized convolutions run on the CPU only");
  }
  if (!can_use_unfold(x, w, options.shape, s)) {
    return reference::conv1d(x, w, options, s);
  }
  ops::StreamingConv conv{
      .shape = options.shape, .epilogue = options.epilogue, .keep = false};
  ops::FrameSpan frames{std::nullopt, x};
  return gpu::streaming_conv1d(frames, gpu::make_filters(w, false, s), conv, s)
      .y;
}

mx::array conv_transpose1d(
    const mx::array& x,
    const ops::TransposedFilters& filters,
    const ops::ConvTranspose1d& shape,
    mx::Stream s) {
  if (!can_use_overlap(x, filters.w, shape, s)) {
    return reference::conv_transpose1d(x, filters, shape, s);
  }
  ops::FrameSpan frames{std::nullopt, x};
  return gpu::streaming_conv_transpose1d(frames, filters, {shape}, s).y;
}

} // namespace nightingale::gpu
