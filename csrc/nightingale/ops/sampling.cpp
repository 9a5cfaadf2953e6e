#include "nightingale/ops/sampling.h"

#include "mlx/ops.h"
#include "nightingale/backends/signal_ops.h"

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

Sampler choose_token(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    Sampler sampler,
    mx::Stream s) {
  return on_cpu(s)
      ? reference::choose_token(logits, weights, std::move(sampler), s)
      : gpu::choose_token(logits, weights, std::move(sampler), s);
}

mx::array guide(const mx::array& logits, float weight, mx::Stream s) {
  return on_cpu(s) ? cpu::guide(logits, weight, s)
                   : gpu::guide(logits, weight, s);
}

mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    mx::Stream s) {
  return on_cpu(s) ? cpu::filter_logits(logits, seen, options, s)
                   : gpu::filter_logits(logits, seen, options, s);
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
