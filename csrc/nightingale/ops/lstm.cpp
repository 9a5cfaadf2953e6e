#include "nightingale/ops/lstm.h"

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

mx::array lstm(
    const mx::array& x,
    const mx::array& w_ih,
    const mx::array& w_hh,
    const mx::array& bias,
    mx::Stream s) {
  return on_cpu(s) ? cpu::lstm(x, w_ih, w_hh, bias, s)
                   : reference::lstm(x, w_ih, w_hh, bias, s);
}

} // namespace nightingale::ops
