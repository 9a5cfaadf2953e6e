#include "nightingale/ops/embedding.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array
embedding(const mx::array& table, const mx::array& ids, mx::Stream s) {
  return on_cpu(s) ? cpu::embedding(table, ids, s)
                   : gpu::embedding(table, ids, s);
}

} // namespace nightingale::ops
