#pragma once

#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// The alignment analyser: from the attention weights of a few heads on the text
// it tracks which text token is being spoken, suppresses an early stop token
// and forces one when the speech no longer follows the text. Its state is two
// small arrays that stay on the device.

// Indices into AlignmentState::marks.
enum AlignmentMark : int {
  kFrame, // steps taken
  kTextPosition, // running position in the text tokens, start token included
  kStarted,
  kComplete,
  kLastToken,
  kTokenCount, // speech tokens so far, the start of speech included
  kStopSuppressed, // in the last step
  kStopForced, // in the last step: a sum of AlignmentFault
  kMarks
};

enum AlignmentFault : int {
  kLongTail = 1, // the last text tokens last too long
  kTextRepetition = 2, // earlier text is attended to again after the end
  kTokenRepetition = 4, // the same speech token twice in a row
};

// Indices into AlignmentState::sums.
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

// When a stop is forced.
struct AlignmentLimits {
  // Largest sum of attention weights on one of the last text tokens, or on the
  // text before them, after the end was reached: 5 is at least 200 ms.
  float after_end = 5.0f;
  int first_stop = 0; // no stop before this many steps, chosen or forced
  // Number of speech tokens, the start of speech included, from which on the
  // same token twice in a row is a fault.
  int first_repeat = 3;
};

struct AlignmentInput {
  // For each aligned head [R, S], S text tokens with start and stop; R is 2 in
  // the first step (both start-of-speech rows), then 1.
  std::vector<mx::array> weights;
  mx::array logits; // [V]
  mx::array token; // [1] int32, the last one chosen
  int stop_token;
  AlignmentLimits limits = {};
};

struct AlignmentStep {
  mx::array logits; // [V]
  AlignmentState state;
};

// One step between guidance and the repetition penalty.
AlignmentStep alignment_step(
    const AlignmentInput& input,
    const AlignmentState& state,
    mx::Stream s);

} // namespace nightingale::ops
