#include "nightingale/ops/alignment.h"

namespace nightingale::ops {

AlignmentState AlignmentState::start() {
  std::vector<int> marks(kMarks, 0);
  marks[kLastToken] = -1;
  std::vector<float> sums(kSums, 0.0f);
  return {mx::array(marks.data(), {kMarks}), mx::array(sums.data(), {kSums})};
}

} // namespace nightingale::ops
