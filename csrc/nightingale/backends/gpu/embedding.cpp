#include "nightingale/backends/gpu/embedding.h"

#include "nightingale/backends/gpu/kernel.h"

namespace nightingale::gpu {

mx::array embed_token(
    const mx::array& table,
    const mx::array& places,
    const mx::array& token,
    int place,
    int rows,
    mx::Stream s) {
  int channels = table.shape(1);
  return launch_one(
      {.kernel = "embed_token",
       .inputs = {table, places, token, mx::array({place})},
       .outputs = {{{rows, 1, channels}}},
       .constants = {{"K", channels}, {"ROWS", rows}},
       .threads = {1024, 512, 256, 128, 64, 32}},
      s);
}

} // namespace nightingale::gpu
