#include "nightingale/ops/alignment.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kVocabulary = 12, kStop = 9;

// The analyser computed from its whole history, every row of weights and every
// token, in each step.
class AnalyserReference {
 public:
  AnalyserReference(int text, const ops::AlignmentLimits& limits)
      : text_(text), limits_(limits) {}

  // rows: the mean of the heads. Returns the logits that go on.
  Values step(std::vector<Values> rows, int token, Values logits) {
    int frame = steps_++;
    for (auto& row : rows) {
      for (int j = frame + 1; j < text_; ++j) {
        row[j] = 0.0;
      }
      history_.push_back(row);
    }
    const Values& last = history_.back();
    int here = std::ranges::max_element(last) - last.begin();
    if (-4 < here - position && here - position < 7) {
      position = here;
    }
    started = started || !is_false_start();
    if (!complete && position >= text_ - 3) {
      complete = true;
      completed_at_ = history_.size();
    }
    tokens_.push_back(token);
    size_t heard = tokens_.size();
    forced = 0;
    if (complete && tail_length() >= limits_.after_end) {
      forced |= ops::kLongTail;
    }
    if (complete && attention_to_earlier_text() > limits_.after_end) {
      forced |= ops::kTextRepetition;
    }
    if (static_cast<int>(heard) >= limits_.first_repeat &&
        tokens_[heard - 2] == token) {
      forced |= ops::kTokenRepetition;
    }
    suppressed = here < text_ - 3 && text_ > 5;
    if (frame < limits_.first_stop) {
      forced = 0;
      suppressed = true;
    }
    if (suppressed) {
      logits[kStop] = -32768.0;
    }
    if (forced) {
      logits.assign(logits.size(), -32768.0);
      logits[kStop] = 32768.0;
    }
    return logits;
  }

  int position = 0;
  bool started = false, complete = false, suppressed = false;
  int forced = 0;

 private:
  bool is_false_start() const {
    double ending = 0.0, opening = 0.0;
    for (size_t i = 0; i < history_.size(); ++i) {
      for (int j = 0; j < text_; ++j) {
        if (i + 2 >= history_.size() && j >= text_ - 2) {
          ending = std::max(ending, history_[i][j]);
        }
        if (j < 4) {
          opening = std::max(opening, history_[i][j]);
        }
      }
    }
    return ending > 0.1 || opening < 0.5;
  }

  double tail_length() const {
    double longest = 0.0;
    for (int j = std::max(0, text_ - 3); j < text_; ++j) {
      double sum = 0.0;
      for (size_t i = completed_at_; i < history_.size(); ++i) {
        sum += history_[i][j];
      }
      longest = std::max(longest, sum);
    }
    return longest;
  }

  double attention_to_earlier_text() const {
    double sum = 0.0;
    for (size_t i = completed_at_; i < history_.size() && text_ > 5; ++i) {
      auto& row = history_[i];
      sum += *std::max_element(row.begin(), row.end() - 5);
    }
    return sum;
  }

  int text_, steps_ = 0;
  ops::AlignmentLimits limits_;
  std::vector<Values> history_;
  std::vector<int> tokens_;
  size_t completed_at_ = 0;
};

struct Outcome {
  int position = 0;
  bool started = false, complete = false, ever_suppressed = false;
  int first_forced = -1, forced = 0;
};

// Speech whose attention is at path(step) in the text and whose tokens are
// token(step). Both backends must agree with AnalyserReference in every step.
template <typename Path, typename Token>
Outcome follow(
    int text,
    int steps,
    int heads,
    Path path,
    Token token,
    const ops::AlignmentLimits& limits = {}) {
  AnalyserReference analyser(text, limits);
  auto on_cpu = ops::AlignmentState::start();
  auto on_graph = ops::AlignmentState::start();
  Outcome outcome;
  for (int i = 0; i < steps; ++i) {
    int count = i == 0 ? 2 : 1;
    std::vector<Values> mean(count, Values(text));
    std::vector<mx::array> weights;
    for (int h = 0; h < heads; ++h) {
      std::vector<float> head = noise(size_t(count) * text, i * heads + h + 1);
      for (int r = 0; r < count; ++r) {
        for (int j = 0; j < text; ++j) {
          float& x = head[r * text + j];
          x = std::fabs(x) * 0.01f + (j == path(i) ? 0.8f : 0.0f);
          mean[r][j] += double(x) / heads;
        }
      }
      weights.push_back(array_of(head, {count, text}));
    }
    auto logits = noise_array({kVocabulary}, 1000 + i);
    mx::array last({token(i)});
    Values expected = analyser.step(mean, token(i), values(logits));

    ops::AlignmentInput input{weights, logits, last, kStop, limits};
    auto a = cpu::alignment_step(input, on_cpu, cpu_stream());
    auto b = reference::alignment_step(input, on_graph, graph_stream());
    on_cpu = a.state;
    on_graph = b.state;
    REQUIRE(values(a.logits) == expected);
    REQUIRE(values(b.logits) == expected);
    Values marks = values(on_cpu.marks);
    REQUIRE(marks[ops::kFrame] == i + 1);
    REQUIRE(marks[ops::kTextPosition] == analyser.position);
    REQUIRE(marks[ops::kStarted] == analyser.started);
    REQUIRE(marks[ops::kComplete] == analyser.complete);
    REQUIRE(marks[ops::kLastToken] == token(i));
    REQUIRE(marks[ops::kTokenCount] == i + 1);
    REQUIRE(marks[ops::kStopSuppressed] == analyser.suppressed);
    REQUIRE(marks[ops::kStopForced] == analyser.forced);
    REQUIRE(values(on_graph.marks) == marks);
    REQUIRE(
        relative_error(on_graph.sums, values(on_cpu.sums)) <
        graph_tolerance(1e-6));

    outcome.position = analyser.position;
    outcome.started = analyser.started;
    outcome.complete = analyser.complete;
    outcome.ever_suppressed |= analyser.suppressed;
    if (analyser.forced && outcome.first_forced < 0) {
      outcome.first_forced = i;
      outcome.forced = analyser.forced;
    }
  }
  return outcome;
}

int always_new(int step) {
  return step % 2;
}

} // namespace

TEST_CASE("speech that walks through the text is followed to its end") {
  auto walk = [](int step) { return std::min(step / 3, 19); };
  auto outcome = follow(20, 56, 3, walk, always_new);
  CHECK(outcome.position == 18);
  CHECK(outcome.started);
  CHECK(outcome.complete);
  CHECK(outcome.ever_suppressed);
  CHECK(outcome.first_forced == -1);
}

TEST_CASE("a jump in the text is not followed, and the stop token waits") {
  auto jump = [](int step) { return step < 30 ? std::min(step / 3, 6) : 14; };
  auto outcome = follow(20, 36, 1, jump, always_new);
  CHECK(outcome.position == 6);
  CHECK_FALSE(outcome.complete);
  CHECK(outcome.ever_suppressed);
}

TEST_CASE("speech that stays on the last words is stopped") {
  auto linger = [](int step) { return std::min(step, 9); };
  auto outcome = follow(10, 24, 2, linger, always_new);
  // Complete at step 7; from the next, 0.8 a step on the last word.
  CHECK(outcome.forced == ops::kLongTail);
  CHECK(outcome.first_forced == 15);
}

TEST_CASE("speech that returns to earlier text after the end is stopped") {
  auto again = [](int step) { return step < 20 ? step : 3 + step % 9; };
  auto outcome = follow(22, 40, 3, again, always_new);
  CHECK(outcome.complete);
  CHECK((outcome.forced & ops::kTextRepetition) != 0);
}

TEST_CASE("the same speech token twice in a row is stopped from the third on") {
  auto walk = [](int step) { return step / 3; };
  auto outcome =
      follow(20, 8, 1, walk, [](int step) { return step < 5 ? step : 5; });
  CHECK(outcome.forced == ops::kTokenRepetition);
  CHECK(outcome.first_forced == 6);
  // The start of speech and the first token may be alike.
  outcome = follow(20, 2, 1, walk, [](int) { return 4; });
  CHECK(outcome.first_forced == -1);
  outcome = follow(20, 12, 1, walk, [](int) { return 4; }, {.first_repeat = 9});
  CHECK(outcome.first_forced == 8);
}

TEST_CASE("texts too short to judge do not hold the stop token back") {
  for (int text : {1, 2, 3, 4, 5, 6}) {
    CAPTURE(text);
    auto outcome =
        follow(text, 4, 1, [](int step) { return step / 4; }, always_new);
    CHECK(outcome.ever_suppressed == (text > 5));
  }
}

TEST_CASE("limits give speech more time after the end of the text") {
  auto linger = [](int step) { return std::min(step, 9); };
  CHECK(follow(10, 24, 2, linger, always_new).first_forced == 15);
  auto outcome = follow(10, 40, 2, linger, always_new, {.after_end = 12.0f});
  CHECK(outcome.forced == ops::kLongTail);
  CHECK(outcome.first_forced == 23);
  auto again = [](int step) { return step < 20 ? step : 3 + step % 9; };
  auto sooner = follow(22, 60, 3, again, always_new);
  auto later = follow(22, 60, 3, again, always_new, {.after_end = 15.0f});
  CHECK((later.forced & ops::kTextRepetition) != 0);
  CHECK(later.first_forced > sooner.first_forced + 10);
}

TEST_CASE("no stop is forced or let through before the first that may be") {
  auto stay = [](int) { return 0; };
  auto same = [](int) { return 4; };
  CHECK(follow(4, 12, 1, stay, same).first_forced == 2);
  auto outcome = follow(4, 12, 1, stay, same, {.first_stop = 6});
  CHECK(outcome.first_forced == 6);
  CHECK(outcome.ever_suppressed);
}

TEST_CASE("alignment_step takes every layout of weights and logits") {
  auto weights = noise_array({1, 8}, 1), logits = noise_array({12}, 2);
  auto state = ops::AlignmentState::start();
  mx::array token({3});
  auto s = cpu_stream();
  check_views(weights, [&](auto& v) {
    ops::AlignmentInput input{{v, v}, logits, token, kStop};
    return cpu::alignment_step(input, state, s).state.sums;
  });
  check_views(logits, [&](auto& v) {
    ops::AlignmentInput input{{weights}, v, token, kStop};
    return cpu::alignment_step(input, state, s).logits;
  });
}
