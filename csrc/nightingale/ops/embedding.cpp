#include "nightingale/ops/embedding.h"

#include "mlx/ops.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/kernel.h"
#include "nightingale/ops/graph/ops.h"

namespace nightingale::ops {

namespace {

mx::array embed_by_kernel(
    const mx::array& table,
    const mx::array& places,
    const mx::array& token,
    int place,
    int rows,
    mx::Stream s) {
  int channels = table.shape(1);
  return gpu::launch_one(
      {.kernel = "embed_token",
       .inputs = {table, places, token, gpu::numbers({place})},
       .outputs = {{{rows, 1, channels}}},
       .constants = {{"K", channels}, {"ROWS", rows}},
       .threads = {1024, 512, 256, 128, 64, 32}},
      s);
}

} // namespace

mx::array
embedding(const mx::array& table, const mx::array& ids, mx::Stream s) {
  return on_cpu(s) ? cpu::embedding(table, ids, s)
                   : graph::embedding(table, ids, s);
}

mx::array embed_token(
    const mx::array& table,
    const mx::array& places,
    const mx::array& token,
    int place,
    int rows,
    mx::Stream s) {
  if (!on_cpu(s) && gpu::has_kernels(s)) {
    return embed_by_kernel(table, places, token, place, rows, s);
  }
  auto sound = embedding(table, token, s);
  auto where = embedding(places, mx::array({place}), s);
  auto sum = mx::astype(mx::add(sound, where, s), mx::float32, s);
  return mx::broadcast_to(sum, {rows, 1, table.shape(1)}, s);
}

} // namespace nightingale::ops
