#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

// y = norm(x) of every row, of any floating types. norm(x, channels, y)
template <typename F>
void for_norms(const mx::array& x, mx::array& y, F norm) {
  int channels = x.shape(-1);
  for_rows(row_count(x), [&](int row) {
    int64_t begin = int64_t(row) * channels;
    const float* from = read_floats(x, begin, channels);
    write_floats(
        y, begin, channels, [&](float* to) { norm(from, channels, to); });
  });
}

} // namespace

mx::array rms_norm(const mx::array& x, const ops::RmsNorm& norm, mx::Stream s) {
  return make_op(
      "RmsNorm",
      {x.shape()},
      {dense(x, s), as_float(norm.w, s)},
      [eps = norm.eps](const Arrays& in, Arrays& out) {
        const float* w = in[1].data<float>();
        for_norms(in[0], out[0], [&](const float* x, int channels, float* y) {
          simd().rms_norm(x, w, channels, eps, y);
        });
      },
      s);
}

mx::array layer_norm(
    const mx::array& x,
    const ops::LayerNorm& norm,
    mx::Dtype dtype,
    mx::Stream s) {
  return make_op(
      "LayerNorm",
      {x.shape(), dtype},
      {dense(x, s), as_float(norm.w, s), as_float(norm.b, s)},
      [eps = norm.eps](const Arrays& in, Arrays& out) {
        const float *w = in[1].data<float>(), *b = in[2].data<float>();
        for_norms(in[0], out[0], [&](const float* x, int channels, float* y) {
          simd().layer_norm(x, w, b, channels, eps, y);
        });
      },
      s);
}

mx::array norm_mish(
    const mx::array& x,
    const ops::LayerNorm& norm,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s) {
  Arrays inputs{dense(x, s), as_float(norm.w, s), as_float(norm.b, s)};
  if (shift) {
    inputs.push_back(as_float(*shift, s));
  }
  return make_op(
      "NormMish",
      {x.shape(), dtype},
      std::move(inputs),
      [eps = norm.eps](const Arrays& in, Arrays& out) {
        const float *w = in[1].data<float>(), *b = in[2].data<float>();
        const float* shift = in.size() > 3 ? in[3].data<float>() : nullptr;
        for_norms(in[0], out[0], [&](const float* x, int channels, float* y) {
          simd().norm_mish(x, w, b, shift, channels, eps, y);
        });
      },
      s);
}

} // namespace nightingale::cpu
