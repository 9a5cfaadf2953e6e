#include "nightingale/ops/alignment.h"

#include "mlx/ops.h"
#include "nightingale/backends/signal_ops.h"

namespace nightingale::ops {

AlignmentState AlignmentState::start() {
  std::vector<int> marks(kMarks, 0);
  marks[kLastToken] = -1;
  std::vector<float> sums(kSums, 0.0f);
  return {mx::array(marks.data(), {kMarks}), mx::array(sums.data(), {kSums})};
}

AlignmentStep alignment_step(
    const AlignmentInput& input,
    const AlignmentState& state,
    mx::Stream s) {
  return on_cpu(s) ? cpu::alignment_step(input, state, s)
                   : gpu::alignment_step(input, state, s);
}

} // namespace nightingale::ops
