#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

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

} // namespace nightingale::cpu
