#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::reference {

// Vectors in codes and back, as nightingale/ops/quantized_cache.h has them.
// x: [..., head_dim] → [..., words] uint32
mx::array encode_heads(const mx::array& x, int bits, mx::Stream s);
mx::array
decode_heads(const mx::array& rows, int bits, mx::Dtype dtype, mx::Stream s);

} // namespace nightingale::reference
