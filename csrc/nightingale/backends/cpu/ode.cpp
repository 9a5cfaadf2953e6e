#include <algorithm>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

mx::array euler_step(
    const mx::array& x,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s) {
  return make_op(
      "EulerStep",
      {x.shape(), mx::float32, 0},
      {as_float(x, s), as_float(velocity, s)},
      [=](const Arrays& in, Arrays& out) {
        constexpr int64_t tile_size = 1 << 14;
        bool guided = in[1].shape(0) == 2;
        int64_t size = in[0].size();
        parallel_for(ceil_div(size, tile_size), [&](int tile) {
          int64_t begin = tile * tile_size;
          int64_t count = std::min(tile_size, size - begin);
          const float* v = in[1].data<float>() + begin;
          float* x = out[0].data<float>() + begin;
          for (int64_t i = 0; i < count; ++i) {
            float mixed =
                guided ? (1 + guidance) * v[i] - guidance * v[size + i] : v[i];
            x[i] += dt * mixed;
          }
        });
      },
      s);
}

} // namespace nightingale::cpu
