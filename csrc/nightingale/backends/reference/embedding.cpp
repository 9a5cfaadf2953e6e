#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

mx::array
embedding(const mx::array& table, const mx::array& ids, mx::Stream s) {
  return mx::take(table, ids, 0, s);
}

mx::array embed_token(const ops::TokenEmbedding& token, mx::Stream s) {
  auto what = reference::embedding(token.table, token.token, s);
  auto where =
      reference::embedding(token.positions, mx::array({token.position}), s);
  auto sum = mx::astype(mx::add(what, where, s), mx::float32, s);
  return mx::broadcast_to(sum, {token.rows, 1, token.table.shape(1)}, s);
}

} // namespace nightingale::reference
