#include "nightingale/backends/cpu/alignment.h"

#include <algorithm>

#include "nightingale/backends/cpu/ops.h"

namespace nightingale::cpu {

namespace {

constexpr float kNever = -32768.0f;
constexpr float kAlways = 32768.0f;

struct MeanWeights;

// Mean of the heads' weights, zero for text after `frame`: [rows * text].
std::span<const float> mean_weights(
    std::span<const mx::array> heads,
    int frame) {
  int size = heads[0].size(), text = heads[0].shape(1);
  int shown = std::min(text, frame + 1);
  float* mean = scratch<MeanWeights>(size);
  std::fill_n(mean, size, 0.0f);
  for (int row = 0; row < size; row += text) {
    for (const auto& head : heads) {
      const float* w = head.data<float>() + row;
      for (int i = 0; i < shown; ++i) {
        mean[row + i] += w[i];
      }
    }
    for (int i = 0; i < shown; ++i) {
      mean[row + i] /= std::ssize(heads);
    }
  }
  return {mean, static_cast<size_t>(size)};
}

float peak(const float* begin, const float* end) {
  float most = 0.0f;
  for (; begin < end; ++begin) {
    most = std::max(most, *begin);
  }
  return most;
}

// Updates the state by the rows of one step; returns the text position that
// the last row attends to most.
int follow(std::span<const float> weights, int text, int* marks, float* sums) {
  const float* end = weights.data() + weights.size();
  const float* last = end - text;
  int position = std::max_element(last, end) - last;
  int jump = position - marks[ops::kTextPosition];
  if (jump > -4 && jump < 7) {
    marks[ops::kTextPosition] = position;
  }

  float ending = 0.0f, previous_ending = sums[ops::kEndingPeak];
  for (const float* row = weights.data(); row < end; row += text) {
    sums[ops::kOpeningPeak] =
        std::max(sums[ops::kOpeningPeak], peak(row, row + std::min(text, 4)));
    if (row != weights.data()) {
      previous_ending = ending;
    }
    ending = peak(row + std::max(0, text - 2), row + text);
  }
  sums[ops::kEndingPeak] = ending;
  bool false_start = !marks[ops::kStarted] &&
      (std::max(ending, previous_ending) > 0.1f ||
       sums[ops::kOpeningPeak] < 0.5f);
  marks[ops::kStarted] = !false_start;

  if (marks[ops::kComplete]) {
    for (int i = 0; i < 3; ++i) {
      int column = text - 3 + i;
      sums[ops::kTail0 + i] += column >= 0 ? last[column] : 0.0f;
    }
    sums[ops::kRepeated] += peak(last, end - std::min(text, 5));
  }
  marks[ops::kComplete] =
      marks[ops::kComplete] || marks[ops::kTextPosition] >= text - 3;
  ++marks[ops::kFrame];
  return position;
}

int faults_of(
    int token,
    const ops::AlignmentLimits& limits,
    int* marks,
    const float* sums) {
  int faults = 0;
  if (marks[ops::kComplete]) {
    const float* tail = sums + ops::kTail0;
    float longest = *std::max_element(tail, tail + 3);
    faults |= longest >= limits.after_end ? ops::kLongTail : 0;
    faults |=
        sums[ops::kRepeated] > limits.after_end ? ops::kTextRepetition : 0;
  }
  ++marks[ops::kTokenCount];
  if (marks[ops::kTokenCount] >= limits.first_repeat &&
      token == marks[ops::kLastToken]) {
    faults |= ops::kTokenRepetition;
  }
  marks[ops::kLastToken] = token;
  return faults;
}

} // namespace

void follow_step(
    const AlignmentView& step,
    int* marks,
    float* sums,
    float* logits,
    int count) {
  int text = step.weights[0].shape(1);
  bool early = marks[ops::kFrame] < step.limits.first_stop;
  auto mean = mean_weights(step.weights, marks[ops::kFrame]);
  int position = follow(mean, text, marks, sums);
  int faults = faults_of(step.token, step.limits, marks, sums);
  if (early) {
    faults = 0;
  }
  bool suppress = early || (position < text - 3 && text > 5);
  if (suppress) {
    logits[step.stop_token] = kNever;
  }
  if (faults) {
    std::fill_n(logits, count, kNever);
    logits[step.stop_token] = kAlways;
  }
  marks[ops::kStopSuppressed] = suppress;
  marks[ops::kStopForced] = faults;
}

ops::AlignmentStep alignment_step(
    const ops::AlignmentInput& input,
    const ops::AlignmentState& state,
    mx::Stream s) {
  const auto& logits = input.logits;
  auto limits = input.limits;
  int stop_token = input.stop_token;
  int heads = input.weights.size();
  Arrays inputs;
  for (const auto& w : input.weights) {
    inputs.push_back(as_float(w, s));
  }
  inputs.insert(
      inputs.end(),
      {as_float(logits, s),
       as_ids(input.token, s),
       dense(state.marks, s),
       dense(state.sums, s)});
  auto outputs = make_ops(
      "AlignmentStep",
      {{logits.shape()},
       {state.marks.shape(), mx::int32},
       {state.sums.shape()}},
      std::move(inputs),
      [=](const Arrays& in, Arrays& out) {
        const auto *logits = &in[heads], *token = logits + 1;
        float* y = out[0].data<float>();
        int* marks = out[1].data<int>();
        float* sums = out[2].data<float>();
        int count = logits->size();
        std::copy_n(logits->data<float>(), count, y);
        std::copy_n(token[1].data<int>(), int(ops::kMarks), marks);
        std::copy_n(token[2].data<float>(), int(ops::kSums), sums);

        std::span weights(in.data(), heads);
        int last = token->data<int>()[0];
        follow_step({weights, last, stop_token, limits}, marks, sums, y, count);
      },
      s);
  return {outputs[0], {outputs[1], outputs[2]}};
}

} // namespace nightingale::cpu
