#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::gpu {

mx::array embed_token(const ops::TokenEmbedding& token, mx::Stream s) {
  if (!has_kernels(s)) {
    return backends::embed_token(token, s);
  }
  int channels = token.table.shape(1);
  return launch_one(
      {.kernel = "embed_token",
       .inputs =
           {token.table,
            token.positions,
            token.token,
            mx::array({token.position})},
       .outputs = {{{token.rows, 1, channels}}},
       .constants = {{"K", channels}, {"ROWS", token.rows}},
       .threads = {1024, 512, 256, 128, 64, 32}},
      s);
}

} // namespace nightingale::gpu
