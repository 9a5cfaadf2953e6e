#include "nightingale/ops/sampling.h"

#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/gpu/ops.h"

namespace nightingale::ops {

mx::array guide(const mx::array& logits, float weight, mx::Stream s) {
  return on_cpu(s) ? cpu::guide(logits, weight, s)
                   : gpu::guide(logits, weight, s);
}

mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const Sampling& sampling,
    mx::Stream s) {
  return on_cpu(s) ? cpu::filter_logits(logits, seen, sampling, s)
                   : gpu::filter_logits(logits, seen, sampling, s);
}

mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s) {
  return on_cpu(s) ? cpu::draw_token(logits, key, s)
                   : gpu::draw_token(logits, key, s);
}

mx::array forbid_token(const mx::array& logits, int token, mx::Stream s) {
  return on_cpu(s) ? cpu::forbid_token(logits, token, s)
                   : gpu::forbid_token(logits, token, s);
}

mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s) {
  return on_cpu(s) ? cpu::mark_seen(seen, token, s)
                   : gpu::mark_seen(seen, token, s);
}

} // namespace nightingale::ops
