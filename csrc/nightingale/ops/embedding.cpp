#include "nightingale/ops/embedding.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

mx::array
embedding(const mx::array& table, const mx::array& ids, mx::Stream s) {
  return on_cpu(s) ? cpu::embedding(table, ids, s)
                   : gpu::embedding(table, ids, s);
}

mx::array embed_token(const TokenEmbedding& embedding, mx::Stream s) {
  return on_cpu(s) ? cpu::embed_token(embedding, s)
                   : gpu::embed_token(embedding, s);
}

} // namespace nightingale::ops
