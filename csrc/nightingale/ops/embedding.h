#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Rows of a table. table: [V, C]; ids: [...] int32 → [..., C], float32 on the
// CPU, the table's type on a GPU. Ids must be rows of the table.
mx::array embedding(const mx::array& table, const mx::array& ids, mx::Stream s);

struct TokenEmbedding {
  mx::array table; // [V, C]
  mx::array positions; // [P, C]
  mx::array token; // [1] int32
  int position; // row of `positions`
  int rows; // of the result
};

// The token's row plus the position's, repeated for every batch row:
// [rows, 1, C] float32
mx::array embed_token(const TokenEmbedding& embedding, mx::Stream s);

} // namespace nightingale::ops
