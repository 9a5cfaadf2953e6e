#include "nightingale/ops/lstm.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/graph/ops.h"

namespace nightingale::ops {

mx::array lstm(
    const mx::array& x,
    const mx::array& w_ih,
    const mx::array& w_hh,
    const mx::array& bias,
    mx::Stream s) {
  return on_cpu(s) ? cpu::lstm(x, w_ih, w_hh, bias, s)
                   : graph::lstm(x, w_ih, w_hh, bias, s);
}

} // namespace nightingale::ops
