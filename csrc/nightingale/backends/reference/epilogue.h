#pragma once

#include "nightingale/ops/epilogue.h"

namespace nightingale::reference {

// `y`, a product that took `x` in, after the epilogue.
mx::array apply_epilogue(
    mx::array y,
    const mx::array& x,
    const ops::Epilogue& epilogue,
    mx::Stream s);

} // namespace nightingale::reference
