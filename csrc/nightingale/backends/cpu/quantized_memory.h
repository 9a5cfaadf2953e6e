#pragma once

#include "nightingale/ops/backend.h"

namespace nightingale::cpu {

// A uint8 array, still to be written, for weights in codes. Arrays lie one
// after the other in large blocks of huge pages, as the weights of a checkpoint
// do: a token streams through all of them, a fifth faster than through small
// pages. A block is freed with the last array in it.
mx::array quantized_array(const mx::Shape& shape);

} // namespace nightingale::cpu
