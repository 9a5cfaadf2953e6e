#include "nightingale/ops/sampling.h"

#include "mlx/ops.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::ops {

Sampler Sampler::start(
    const TokenRules& rules,
    int vocabulary,
    int first,
    mx::Stream s) {
  mx::array token({first});
  auto alignment = AlignmentState::start();
  return {
      rules,
      gpu::pack_rules(rules),
      0,
      token,
      mark_seen(mx::zeros({vocabulary}, mx::uint8, s), token, s),
      alignment,
      mx::array({0, 0})};
}

Sampler Sampler::fork_for_draft(mx::Stream s) const {
  Sampler copy = *this;
  copy.rules.analyser = false;
  // mx::copy would share the buffer.
  copy.seen = mx::bitwise_or(seen, mx::array(0, mx::uint8), s);
  return copy;
}

} // namespace nightingale::ops
