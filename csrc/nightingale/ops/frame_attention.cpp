#include "nightingale/ops/frame_attention.h"

#include "mlx/ops.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/frame_attention.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/linear.h"

namespace nightingale::ops {

namespace {

struct Heads {
  mx::array q, k, v; // [batch, T, heads * head_dim]
};

Heads split(const mx::array& qkv, int batch, mx::Stream s) {
  auto frames =
      qkv.ndim() == 3 ? qkv : mx::reshape(qkv, {batch, -1, qkv.shape(1)}, s);
  auto parts = mx::split(frames, 3, -1, s);
  return {parts[0], parts[1], parts[2]};
}

} // namespace

mx::array
frame_attention(const mx::array& qkv, int batch, int heads, mx::Stream s) {
  if (!on_cpu(s)) {
    return gpu::frame_attention(qkv, batch, heads, s);
  }
  auto in = split(qkv, batch, s);
  return cpu::full_attention(in.q, in.k, in.v, heads, s);
}

std::vector<mx::array> project_positions(
    const mx::array& x,
    const Matrix& w,
    int layers,
    int heads,
    mx::Stream s) {
  if (w.is_quantized()) {
    return mx::split(linear(x, w, s), layers, -1, s);
  }
  if (!on_cpu(s) && gpu::has_kernels(s)) {
    return gpu::project_positions(x, w.w, layers, heads, s);
  }
  std::vector<mx::array> all;
  for (const auto& layer : mx::split(w.w, layers, 0, s)) {
    all.push_back(linear(x, layer, s));
  }
  return all;
}

mx::array relative_frame_attention(
    const mx::array& qkv,
    const mx::array& positions,
    const mx::array& content_bias,
    const mx::array& position_bias,
    int heads,
    mx::Stream s) {
  if (!on_cpu(s) && gpu::has_kernels(s)) {
    return gpu::relative_frame_attention(
        qkv, positions, content_bias, position_bias, heads, s);
  }
  auto run =
      on_cpu(s) ? cpu::relative_attention : reference::relative_attention;
  auto in = split(qkv, 1, s);
  return run(
      in.q, in.k, in.v, positions, content_bias, position_bias, heads, s);
}

} // namespace nightingale::ops
