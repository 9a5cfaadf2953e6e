#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::gpu {

// As in nightingale/ops/embedding.h, in one launch.
mx::array embed_token(
    const mx::array& table,
    const mx::array& places,
    const mx::array& token,
    int place,
    int rows,
    mx::Stream s);

} // namespace nightingale::gpu
