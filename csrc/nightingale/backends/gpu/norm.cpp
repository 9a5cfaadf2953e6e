#include "nightingale/backends/gpu/linear.h"

namespace nightingale::gpu {

namespace {

// Metal gets smaller arrays as `constant`, which the kernels do not take; of
// more channels a lane's registers would not be enough.
constexpr int kLeastChannels = 8, kMostChannels = 2048;

} // namespace

bool has_row_kernels(int channels, mx::Stream s) {
  return has_kernels(s) && channels >= kLeastChannels &&
      channels <= kMostChannels;
}

ops::Normed
add_norm(const mx::array& x, const ops::AddNorm& add, mx::Stream s) {
  const auto& [bias, residual, norm, dtype] = add;
  int channels = x.shape(-1), rows = x.size() / channels;
  auto out = launch(
      {.kernel = "add_norm",
       .inputs = {x, bias, residual, norm.w, norm.b},
       .outputs = {{x.shape(), residual.dtype()}, {x.shape(), dtype}},
       .constants = {{"C", channels}, float_constant("EPS", norm.eps)},
       .groups = {rows, 1, 1},
       .threads = {32}},
      s);
  return {out[0], out[1]};
}

ops::Normed linear_add_norm(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::AddNorm& add,
    mx::Stream s) {
  if (can_use_norm_tiles(x, w, s)) {
    return tile_linear_norm(x, w, add, s);
  }
  if (has_row_kernels(w.rows(), s)) {
    return add_norm(gpu::linear(x, w, {}, s), add, s);
  }
  return backends::linear_add_norm(x, w, add, s);
}

} // namespace nightingale::gpu
