#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

mx::array add_velocity(
    const mx::array& x,
    const mx::array& velocity,
    ops::EulerStep step,
    mx::Stream s) {
  return make_op(
      "EulerStep",
      {x.shape(), mx::float32, 0},
      {as_float(x, s), as_float(velocity, s)},
      [step](const Arrays& in, Arrays& out) {
        float guidance = step.guidance, dt = step.dt;
        bool guided = in[1].shape(0) == 2;
        int64_t size = in[0].size();
        for_parts(size, 1 << 14, [&](int64_t begin, int count) {
          const float* v = in[1].data<float>() + begin;
          float* x = out[0].data<float>() + begin;
          for (int i = 0; i < count; ++i) {
            float mixed =
                guided ? (1 + guidance) * v[i] - guidance * v[size + i] : v[i];
            x[i] += dt * mixed;
          }
        });
      },
      s);
}

// Writes x into the first columns of every row of `buffer`, in place.
mx::array
write_columns(const mx::array& buffer, const mx::array& x, mx::Stream s) {
  return make_op(
      "WriteColumns",
      {buffer.shape(), buffer.dtype(), 0},
      {dense(buffer, s), as_float(x, s)},
      [](const Arrays& in, Arrays& out) {
        const auto& x = in[1];
        int length = x.shape(1);
        int64_t columns = x.shape(2), width = out[0].shape(2);
        Storage storage = storage_of(out[0]);
        auto pack = simd().pack[static_cast<int>(storage)];
        for_rows(row_count(out[0]), [&](int row) {
          pack(
              x.data<float>() + row % length * columns,
              columns,
              out[0].data<char>() + row * width * storage_bytes(storage));
        });
      },
      s);
}

} // namespace

ops::OdeState euler_step(
    const ops::OdeState& state,
    const mx::array& velocity,
    ops::EulerStep step,
    mx::Stream s) {
  auto x = add_velocity(state.x, velocity, step, s);
  return {x, write_columns(state.input, x, s)};
}

} // namespace nightingale::cpu
