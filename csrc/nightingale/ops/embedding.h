#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Rows of a table. table: [V, C]; ids: [...] int32 → [..., C], float32 on the
// CPU, the table's type on a GPU. Ids must be rows of the table.
mx::array embedding(const mx::array& table, const mx::array& ids, mx::Stream s);

// What one token means at its place, the same for every row: the sum of a row
// of each table. token: [1] int32; place: a row of `places` → [rows, 1, C]
// float32
mx::array embed_token(
    const mx::array& table,
    const mx::array& places,
    const mx::array& token,
    int place,
    int rows,
    mx::Stream s);

} // namespace nightingale::ops
