#include "nightingale/ops/embedding.h"

#include "mlx/ops.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/embedding.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

mx::array
embedding(const mx::array& table, const mx::array& ids, mx::Stream s) {
  return on_cpu(s) ? cpu::embedding(table, ids, s)
                   : reference::embedding(table, ids, s);
}

mx::array embed_token(
    const mx::array& table,
    const mx::array& places,
    const mx::array& token,
    int place,
    int rows,
    mx::Stream s) {
  if (!on_cpu(s) && gpu::has_kernels(s)) {
    return gpu::embed_token(table, places, token, place, rows, s);
  }
  auto sound = embedding(table, token, s);
  auto where = embedding(places, mx::array({place}), s);
  auto sum = mx::astype(mx::add(sound, where, s), mx::float32, s);
  return mx::broadcast_to(sum, {rows, 1, table.shape(1)}, s);
}

} // namespace nightingale::ops
