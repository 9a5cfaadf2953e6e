#include "nightingale/ops/sampling.h"

#include "mlx/ops.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/sampling.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

namespace {

mx::array report_of(const mx::array& marks, mx::Stream s) {
  auto at = [&](int place) {
    return mx::slice(marks, {place}, {place + 1}, s);
  };
  return mx::concatenate({at(kTextPosition), at(kStopForced)}, 0, s);
}

// By one op after the other.
Sampler choose_in_parts(
    const mx::array& rows,
    const std::vector<mx::array>& weights,
    Sampler sampler,
    mx::Stream s) {
  const auto& rules = sampler.rules;
  auto logits = guide(rows, rules.options.cfg_weight, s);
  if (rules.analyser) {
    auto step = alignment_step(
        weights,
        logits,
        sampler.token,
        sampler.alignment,
        rules.limits,
        rules.stop_token,
        s);
    logits = step.logits;
    sampler.alignment = step.state;
    sampler.report = report_of(step.state.marks, s);
  }
  if (sampler.position < rules.limits.first_stop) {
    logits = forbid_token(logits, rules.stop_token, s);
  }
  auto key = draw_key(
      rules.options.seed,
      DrawStage::speech_token,
      rules.sentence,
      sampler.position);
  sampler.token =
      draw_token(filter_logits(logits, sampler.seen, rules.options, s), key, s);
  sampler.seen = mark_seen(sampler.seen, sampler.token, s);
  ++sampler.position;
  return sampler;
}

} // namespace

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
  // Not mx::copy, which would share the buffer.
  copy.seen = mx::bitwise_or(seen, mx::array(0, mx::uint8), s);
  return copy;
}

Sampler choose_token(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    Sampler sampler,
    mx::Stream s) {
  return !on_cpu(s) && gpu::can_use_sample_kernel(logits, weights, s)
      ? gpu::choose_token(logits, weights, std::move(sampler), s)
      : choose_in_parts(logits, weights, std::move(sampler), s);
}

mx::array guide(const mx::array& logits, float weight, mx::Stream s) {
  return on_cpu(s) ? cpu::guide(logits, weight, s)
                   : reference::guide(logits, weight, s);
}

mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    mx::Stream s) {
  return on_cpu(s) ? cpu::filter_logits(logits, seen, options, s)
                   : reference::filter_logits(logits, seen, options, s);
}

mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s) {
  return on_cpu(s) ? cpu::draw_token(logits, key, s)
                   : reference::draw_token(logits, key, s);
}

mx::array forbid_token(const mx::array& logits, int token, mx::Stream s) {
  return on_cpu(s) ? cpu::forbid_token(logits, token, s)
                   : reference::forbid_token(logits, token, s);
}

mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s) {
  return on_cpu(s) ? cpu::mark_seen(seen, token, s)
                   : reference::mark_seen(seen, token, s);
}

} // namespace nightingale::ops
