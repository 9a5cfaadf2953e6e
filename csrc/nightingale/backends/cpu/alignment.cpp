#include <algorithm>
#include <vector>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"

namespace nightingale::cpu {

namespace {

constexpr float kNever = -32768.0f;
constexpr float kAlways = 32768.0f;

// Mean of the heads' weights, zero for text after `frame`: [rows * text].
std::vector<float> mean_weights(const Arrays& heads, int count, int frame) {
  int text = heads[0].shape(1);
  std::vector<float> mean(heads[0].size());
  for (size_t i = 0; i < mean.size(); ++i) {
    if (static_cast<int>(i % text) > frame) {
      continue;
    }
    float sum = 0.0f;
    for (int h = 0; h < count; ++h) {
      sum += heads[h].data<float>()[i];
    }
    mean[i] = sum / count;
  }
  return mean;
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
int follow(
    const std::vector<float>& weights,
    int text,
    int* marks,
    float* sums) {
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
        int count = logits->size(), text = in[0].shape(1);
        std::copy_n(logits->data<float>(), count, y);
        std::copy_n(token[1].data<int>(), int(ops::kMarks), marks);
        std::copy_n(token[2].data<float>(), int(ops::kSums), sums);

        bool early = marks[ops::kFrame] < limits.first_stop;
        auto mean = mean_weights(in, heads, marks[ops::kFrame]);
        int position = follow(mean, text, marks, sums);
        int last = token->data<int>()[0];
        int faults = faults_of(last, limits, marks, sums);
        if (early) {
          faults = 0;
        }
        bool suppress = early || (position < text - 3 && text > 5);
        if (suppress) {
          y[stop_token] = kNever;
        }
        if (faults) {
          std::fill(y, y + count, kNever);
          y[stop_token] = kAlways;
        }
        marks[ops::kStopSuppressed] = suppress;
        marks[ops::kStopForced] = faults;
      },
      s);
  return {outputs[0], {outputs[1], outputs[2]}};
}

} // namespace nightingale::cpu
