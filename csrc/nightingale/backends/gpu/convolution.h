#pragma once

#include "nightingale/ops/streaming_conv.h"

namespace nightingale::gpu {

// As in nightingale/ops/convolution.h. The windows are laid out by a kernel and
// multiplied by MLX's matmul: its own convolution plans anew for every length
// on CUDA.
mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s);

mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    mx::Stream s);

constexpr int64_t kMostWindowBytes = 256 << 20;

// As in nightingale/ops/streaming_conv.h, where kernels run. Beyond so many
// bytes of windows the results are made in parts.
ops::StreamOutput conv1d(
    const ops::FrameSpan& x,
    const ops::Filters& filters,
    const ops::StreamingConv& conv,
    mx::Stream s,
    int64_t most_window_bytes = kMostWindowBytes);

ops::StreamOutput conv_transpose1d(
    const ops::FrameSpan& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    int keep,
    mx::Stream s);

} // namespace nightingale::gpu
