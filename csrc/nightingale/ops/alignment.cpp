#include "nightingale/ops/alignment.h"

#include "mlx/ops.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::ops {

AlignmentState AlignmentState::start() {
  std::vector<int> marks(kMarks, 0);
  marks[kLastToken] = -1;
  std::vector<float> sums(kSums, 0.0f);
  return {mx::array(marks.data(), {kMarks}), mx::array(sums.data(), {kSums})};
}

AlignmentStep alignment_step(
    const std::vector<mx::array>& weights,
    const mx::array& logits,
    const mx::array& token,
    const AlignmentState& state,
    const AlignmentLimits& limits,
    int stop_token,
    mx::Stream s) {
  return on_cpu(s) ? cpu::alignment_step(
                         weights, logits, token, state, limits, stop_token, s)
                   : reference::alignment_step(
                         weights, logits, token, state, limits, stop_token, s);
}

} // namespace nightingale::ops
