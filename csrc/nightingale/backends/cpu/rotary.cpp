#include "nightingale/backends/cpu/attention_heads.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct Angles;

} // namespace

mx::array rotary(
    const mx::array& x,
    const mx::array& frequencies,
    int past,
    mx::Stream s) {
  return make_op(
      "Rotary",
      {x.shape()},
      {as_rows(x, s), dense(frequencies, s)},
      [past](const Arrays& in, Arrays& out) {
        const auto& x = in[0];
        int batch = x.shape(0), length = x.shape(1), channels = x.shape(2);
        int half = in[1].shape(0);
        const float* frequencies = in[1].data<float>();
        parallel_for(length, [&](int t) {
          float* cosine = scratch<Angles>(2 * half);
          float* sine = cosine + half;
          rotary_angles(frequencies, half, past + t, cosine, sine);
          for (int b = 0; b < batch; ++b) {
            const float* row = row_of<float>(x, b, t);
            float* y =
                out[0].data<float>() + (int64_t(b) * length + t) * channels;
            for (int c = 0; c < channels; c += 2 * half) {
              rotate_head(row + c, cosine, sine, half, y + c);
            }
          }
        });
      },
      s);
}

} // namespace nightingale::cpu
