#include "nightingale/backends/gpu/gemv.h"

namespace nightingale::gpu {

namespace {

constexpr int kLaneColumns = 8; // that a lane takes at once
constexpr int kSimd = 32;
constexpr int kManyRows = 2048; // of a matrix: enough to give every core some

bool is_float(mx::Dtype dtype) {
  return dtype == mx::float32 || dtype == mx::float16 || dtype == mx::bfloat16;
}

} // namespace

bool can_use_gemv(const mx::array& x, const ops::Matrix& w, mx::Stream s) {
  return has_kernels(s) && row_count(x) <= kGemvRows && is_float(x.dtype()) &&
      (w.is_quantized() || is_float(w.w.dtype())) &&
      w.columns() % kLaneColumns == 0;
}

const mx::array& stored(const ops::Matrix& w) {
  return w.is_quantized() ? *w.whole : w.w;
}

GemvShape GemvShape::of(const ops::Matrix& w) {
  GemvShape shape{w.rows() > kManyRows ? 8 : 4, {}};
  int widest = w.columns() > 2048 ? 512 : 128;
  for (int threads = widest; threads >= kSimd; threads /= 2) {
    shape.threads.push_back(threads);
  }
  return shape;
}

std::vector<Constant> gemv_constants(
    const ops::Matrix& w,
    const GemvShape& shape,
    int rows,
    mx::Dtype result) {
  bool quantized = w.is_quantized();
  return {
      {"W", w.w.dtype()},
      {"S", quantized ? w.scales->dtype() : w.w.dtype()},
      {"Y", result},
      {"BITS", quantized ? w.bits : 8 * static_cast<int>(w.w.itemsize())},
      {"GROUP", quantized ? w.group : 1},
      {"N", w.rows()},
      {"ROWS", rows},
      {"BLOCK", shape.block}};
}

} // namespace nightingale::gpu
