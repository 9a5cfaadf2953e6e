#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/alignment.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/random.h"
#include "nightingale/ops/sampling.h"

// Every op as a graph of MLX ops, which is how a GPU runs it; on a CPU stream
// these are the twins that the CPU's own forms are tested against.

namespace nightingale::gpu {

#include "nightingale/ops/forms.inl"

} // namespace nightingale::gpu
