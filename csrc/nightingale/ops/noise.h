#pragma once

#include "nightingale/ops/backend.h"
#include "nightingale/ops/random.h"

namespace nightingale::ops {

// Unit normal draws for `rows` positions from `first` on: element [r, c] is
// word c of the key of position first.position + r, whatever else is drawn.
// → [rows, columns] float32
mx::array
normal_noise(const DrawPosition& first, int rows, int columns, mx::Stream s);

} // namespace nightingale::ops
