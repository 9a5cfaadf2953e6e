#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// Rows of a table. table: [V, C]; ids: [...] int32 → [..., C], float32 on the
// CPU, the table's type on a GPU. Ids must be rows of the table.
mx::array embedding(const mx::array& table, const mx::array& ids, mx::Stream s);

} // namespace nightingale::ops
