#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/row_tiles.h"

namespace nightingale::cpu {

mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s) {
  return make_op(
      "RmsNorm",
      {x.shape()},
      {as_float(x, s), as_float(w, s)},
      [=](const Arrays& in, Arrays& out) {
        int64_t channels = in[0].shape(-1);
        for_rows(row_count(in[0]), [&](int row) {
          simd().rms_norm(
              in[0].data<float>() + row * channels,
              in[1].data<float>(),
              channels,
              eps,
              out[0].data<float>() + row * channels);
        });
      },
      s);
}

mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Stream s) {
  return make_op(
      "LayerNorm",
      {x.shape()},
      {as_float(x, s), as_float(w, s), as_float(b, s)},
      [=](const Arrays& in, Arrays& out) {
        int64_t channels = in[0].shape(-1);
        for_rows(row_count(in[0]), [&](int row) {
          simd().layer_norm(
              in[0].data<float>() + row * channels,
              in[1].data<float>(),
              in[2].data<float>(),
              channels,
              eps,
              out[0].data<float>() + row * channels);
        });
      },
      s);
}

} // namespace nightingale::cpu
