#pragma once

#include "nightingale/ops/activation.h"

namespace nightingale::gpu {

// As in nightingale/ops/activation.h: one launch each.
mx::array
activate(const mx::array& x, ops::Activation activation, mx::Stream s);

mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s);

mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s);

} // namespace nightingale::gpu
