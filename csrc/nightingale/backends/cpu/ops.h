#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/alignment.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/random.h"
#include "nightingale/ops/sampling.h"

namespace nightingale::cpu {

// Up to this many rows a linear or a cached attention runs as dot products,
// whose sums do not depend on the number of rows; above it tiles are faster.
constexpr int kDotRows = ops::kBatchInvariantRows;

#include "nightingale/ops/forms.inl"

} // namespace nightingale::cpu
