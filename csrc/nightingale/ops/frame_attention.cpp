#include "nightingale/ops/frame_attention.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array full_attention(const AttentionHeads& in, mx::Stream s) {
  return on_cpu(s) ? cpu::full_attention(in, s) : gpu::full_attention(in, s);
}

mx::array relative_attention(
    const AttentionHeads& in,
    const RelativePositions& relative,
    mx::Stream s) {
  return on_cpu(s) ? cpu::relative_attention(in, relative, s)
                   : gpu::relative_attention(in, relative, s);
}

mx::array
frame_attention(const mx::array& qkv, int batch, int heads, mx::Stream s) {
  return on_cpu(s) ? cpu::frame_attention(qkv, batch, heads, s)
                   : gpu::frame_attention(qkv, batch, heads, s);
}

std::vector<mx::array> project_positions(
    const mx::array& x,
    const PositionWeights& weights,
    mx::Stream s) {
  return on_cpu(s) ? cpu::project_positions(x, weights, s)
                   : gpu::project_positions(x, weights, s);
}

mx::array relative_frame_attention(
    const mx::array& qkv,
    const RelativePositions& relative,
    int heads,
    mx::Stream s) {
  return on_cpu(s) ? cpu::relative_frame_attention(qkv, relative, heads, s)
                   : gpu::relative_frame_attention(qkv, relative, heads, s);
}

} // namespace nightingale::ops
