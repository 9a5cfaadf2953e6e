#pragma once

#include <optional>
#include <vector>

#include "nightingale/ops/alignment.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/backend.h"
#include "nightingale/ops/convolution.h"
#include "nightingale/ops/random.h"
#include "nightingale/ops/sampling.h"

// Every op as a graph of MLX ops: how a GPU runs what no kernel of ours does
// better, and the twin that the CPU forms and the kernels are tested against.

namespace nightingale::reference {

#include "nightingale/ops/forms.inl"

} // namespace nightingale::reference
