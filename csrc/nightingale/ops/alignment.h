#pragma once

#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// The alignment analyser: from the weights that a few attention heads give to
// the text, it follows where in the text the speech is, keeps the stop token
// from coming early and forces it when the speech goes astray. Its memory is
// two small arrays that stay on the device.

// Places in AlignmentState::marks.
enum AlignmentMark : int {
  kFrame, // steps taken
  kTextPosition, // running position in the text tokens, start token included
  kStarted,
  kComplete,
  kLastToken,
  kTokenCount, // tokens heard, the start of speech included
  kStopSuppressed, // in the last step
  kStopForced, // in the last step: a sum of AlignmentFault
  kMarks
};

enum AlignmentFault : int {
  kLongTail = 1, // the last text tokens last too long
  kTextRepetition = 2, // earlier text is attended to again after the end
  kTokenRepetition = 4, // the same speech token twice in a row
};

// Places in AlignmentState::sums.
enum AlignmentSum : int {
  kOpeningPeak, // largest weight yet on the first four text tokens
  kEndingPeak, // largest weight of the last row on the last two text tokens
  kTail0, // since completion: sums over the last three text tokens
  kTail1,
  kTail2,
  kRepeated, // since completion: sum of the rows' peaks on earlier text
  kSums
};

struct AlignmentState {
  mx::array marks; // [kMarks] int32
  mx::array sums; // [kSums] float32

  static AlignmentState start();
};

// When the speech counts as astray.
struct AlignmentLimits {
  // What one of the last text tokens, or the text before them, may gather of
  // the rows' weights after the end has been reached: 5 is 200 ms and more.
  float after_end = 5.0f;
  int first_stop = 0; // no stop before this many steps, free or forced
  // Tokens heard, the start of speech included, from which on the same one
  // twice in a row counts.
  int first_repeat = 3;
};

struct AlignmentStep {
  mx::array logits; // [V]
  AlignmentState state;
};

// One step between guidance and the repetition penalty.
// weights: for each aligned head [R, S], S text tokens with start and stop; R
// is 2 in the first step (both start-of-speech rows), then 1; logits: [V];
// token: [1] int32, the last one output in.
AlignmentStep alignment_step(
    const std::vector<mx::array>& weights,
    const mx::array& logits,
    const mx::array& token,
    const AlignmentState& state,
    const AlignmentLimits& limits,
    int stop_token,
    mx::Stream s);

} // namespace nightingale::ops
