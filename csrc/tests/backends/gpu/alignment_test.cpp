#include <doctest/doctest.h>

#include <set>

#include "emulated_gpu.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kVocabulary = 33, kStop = 9;

// Where in the text the speech is at each step, and how sure the heads are.
struct Speech {
  int text;
  int heads = 3;
  std::vector<int> path;
  float weight = 0.8f;
  float background = 0.01f;
  float ending = 0.0f; // on the last text token besides
  std::vector<int> most_likely = {}; // token at each step; empty: by chance
  ops::AlignmentLimits limits = {};
  float repetition_penalty = 1.2f;
};

std::vector<mx::array> weights_of(const Speech& speech, int step) {
  int rows = step == 0 ? 2 : 1, at = speech.path[step];
  std::vector<mx::array> heads;
  for (int h = 0; h < speech.heads; ++h) {
    auto w = noise(size_t(rows) * speech.text, step * 7 + h + 1);
    for (int i = 0; i < rows * speech.text; ++i) {
      int column = i % speech.text;
      w[i] = std::fabs(w[i]) * speech.background +
          (column == at ? speech.weight : 0.0f) +
          (column == speech.text - 1 ? speech.ending : 0.0f);
    }
    heads.push_back(array_of(w, {rows, speech.text}));
  }
  return heads;
}

mx::array logits_of(const Speech& speech, int step) {
  auto logits = noise(2 * kVocabulary, 500 + step);
  if (!speech.most_likely.empty()) {
    logits[speech.most_likely[step]] += 60.0f;
  }
  return array_of(logits, {2, kVocabulary});
}

ops::Sampler sampler_for(const Speech& speech) {
  ops::TokenRules rules{
      .options = {.seed = 5, .repetition_penalty = speech.repetition_penalty},
      .analyser = true,
      .limits = speech.limits,
      .text_tokens = speech.text,
      .stop_token = kStop};
  return ops::Sampler::start(rules, kVocabulary, 11, cpu_stream());
}

// What the analyser did in any step.
struct Outcome {
  std::set<int> faults;
  bool started = false, complete = false;
  bool suppressed = false, unsuppressed = false;
};

// The kernel and the CPU must agree in every step.
Outcome listen(const Speech& speech) {
  auto by_kernel = sampler_for(speech), by_cpu = sampler_for(speech);
  Outcome outcome;
  for (size_t i = 0; i < speech.path.size(); ++i) {
    CAPTURE(i);
    auto weights = weights_of(speech, i);
    auto logits = logits_of(speech, i);
    by_kernel = gpu::choose_token(logits, weights, by_kernel, kernel_stream());
    by_cpu = ops::choose_token(logits, weights, by_cpu, cpu_stream());
    auto marks = values(by_cpu.alignment.marks);
    REQUIRE(values(by_kernel.alignment.marks) == marks);
    REQUIRE(same_bits(by_kernel.alignment.sums, by_cpu.alignment.sums));
    REQUIRE(by_kernel.token.item<int>() == by_cpu.token.item<int>());
    REQUIRE(values(by_kernel.seen) == values(by_cpu.seen));
    Values report{marks[ops::kTextPosition], marks[ops::kStopForced]};
    REQUIRE(values(by_kernel.report) == report);
    REQUIRE(values(by_cpu.report) == report);
    outcome.faults.insert(marks[ops::kStopForced]);
    outcome.started |= marks[ops::kStarted] != 0;
    outcome.complete |= marks[ops::kComplete] != 0;
    bool suppressed = marks[ops::kStopSuppressed] != 0;
    outcome.suppressed |= suppressed;
    outcome.unsuppressed |= !suppressed;
  }
  return outcome;
}

// From the first text token to the last, three steps each, then on at the end.
std::vector<int> walk(int text, int steps) {
  std::vector<int> path;
  for (int i = 0; i < steps; ++i) {
    path.push_back(std::min(i / 3, text - 1));
  }
  return path;
}

// Wanders, jumps and comes back.
std::vector<int> wander(int text, int steps, uint32_t seed) {
  std::vector<int> path;
  int at = 0;
  for (float x : noise(steps, seed)) {
    int jump = std::fabs(x) > 2.0f ? static_cast<int>(x * 4.0f) : x > -0.5f;
    at = std::clamp(at + jump, 0, text - 1);
    path.push_back(at);
  }
  return path;
}

std::vector<int> alternating(int steps) {
  std::vector<int> tokens;
  for (int i = 0; i < steps; ++i) {
    tokens.push_back(1 + i % 2);
  }
  return tokens;
}

} // namespace

TEST_CASE("kernel sample: the analyser follows speech to the end of its text") {
  auto outcome = listen({.text = 20, .path = walk(20, 56)});
  CHECK(outcome.started);
  CHECK(outcome.complete);
  CHECK(outcome.suppressed);
  CHECK(outcome.unsuppressed);
}

TEST_CASE("kernel sample: a last text token that lasts too long is a fault") {
  Speech speech{
      .text = 12, .path = walk(12, 60), .most_likely = alternating(60)};
  CHECK(listen(speech).faults.contains(ops::kLongTail));
}

TEST_CASE("kernel sample: text that is attended to again is a fault") {
  Speech speech{
      .text = 12, .path = walk(12, 60), .most_likely = alternating(60)};
  std::fill(speech.path.begin() + 34, speech.path.end(), 3);
  CHECK(listen(speech).faults.contains(ops::kTextRepetition));
}

TEST_CASE("kernel sample: limits that are reached exactly") {
  Speech speech{
      .text = 12,
      .path = walk(12, 60),
      .weight = 0.5f,
      .background = 0.0f,
      .most_likely = alternating(60)};
  CHECK(listen(speech).faults.contains(ops::kLongTail));
  std::fill(speech.path.begin() + 34, speech.path.end(), 3);
  CHECK(listen(speech).faults.contains(ops::kTextRepetition));
}

TEST_CASE("kernel sample: the same token twice is a fault") {
  Speech speech{
      .text = 20, .path = walk(20, 30), .most_likely = alternating(30)};
  speech.most_likely[12] = speech.most_likely[11];
  CHECK(listen(speech).faults == std::set<int>{0, ops::kTokenRepetition});
  speech.limits.first_repeat = 30;
  CHECK(listen(speech).faults == std::set<int>{0});
}

TEST_CASE("kernel sample: no fault and no stop before first_stop") {
  Speech speech{
      .text = 4,
      .path = std::vector<int>(40, 3),
      .most_likely = std::vector<int>(40, kStop),
      .limits = {.after_end = 5.0f, .first_stop = 25}};
  auto outcome = listen(speech);
  CHECK(outcome.suppressed);
  CHECK(outcome.unsuppressed);
  CHECK(*outcome.faults.rbegin() >= ops::kTokenRepetition);
}

TEST_CASE("kernel sample: a forced stop comes through any penalty") {
  // The stop token has been seen by then: its logit is divided.
  Speech speech{
      .text = 12,
      .path = walk(12, 60),
      .most_likely = std::vector<int>(60, kStop),
      .repetition_penalty = 2.0f};
  CHECK(*listen(speech).faults.rbegin() >= ops::kTokenRepetition);
}

TEST_CASE("kernel sample: speech does not start with the end of its text") {
  Speech speech{.text = 8, .path = std::vector<int>(10, 5), .background = 0.0f};
  speech.path.resize(20, 2);
  speech.ending = 0.15f;
  CHECK(!listen(speech).started);
  speech.ending = 0.09f;
  CHECK(listen(speech).started);
  speech.weight = 0.45f; // nor before its start is heard
  CHECK(!listen(speech).started);
}

TEST_CASE("kernel sample: heads that hear nothing point to the start") {
  Speech speech{
      .text = 9, .path = wander(9, 30, 1), .weight = 0.0f, .background = 0.0f};
  auto outcome = listen(speech);
  CHECK(!outcome.started);
  CHECK(!outcome.complete);
}

TEST_CASE("kernel sample: the analyser's state in 60 random steps") {
  uint32_t seed = 0;
  bool started = false, complete = false, suppressed = false;
  std::set<int> faults;
  struct Sizes {
    int text, heads;
  };
  struct Weights {
    float here, background;
  };
  for (auto [text, heads] : std::vector<Sizes>{
           {3, 3},
           {4, 3},
           {5, 3},
           {6, 3},
           {9, 1},
           {20, 2},
           {30, 4},
           {700, 3}}) {
    for (auto [here, background] : std::vector<Weights>{
             {0.3f, 0.05f}, {0.9f, 0.05f}, {0.6f, 0.1f}, {0.6f, 0.02f}}) {
      CAPTURE(text);
      auto outcome = listen(
          {.text = text,
           .heads = heads,
           .path = wander(text, 60, ++seed),
           .weight = here,
           .background = background});
      started |= outcome.started;
      complete |= outcome.complete;
      suppressed |= outcome.suppressed;
      faults.merge(outcome.faults);
    }
  }
  CHECK(started);
  CHECK(complete);
  CHECK(suppressed);
  CHECK(faults.contains(ops::kLongTail));
}

TEST_CASE("more heads than the kernel takes are followed without it") {
  Speech speech{.text = 20, .heads = 5, .path = walk(20, 56)};
  auto tokens_on = [&](mx::Stream s) {
    auto sampler = sampler_for(speech);
    std::vector<int> tokens;
    for (size_t i = 0; i < speech.path.size(); ++i) {
      sampler = ops::choose_token(
          logits_of(speech, i), weights_of(speech, i), sampler, s);
      tokens.push_back(sampler.token.item<int>());
      tokens.push_back(floats(sampler.report)[0]);
    }
    return tokens;
  };
  auto on_cpu = tokens_on(cpu_stream());
  EmulatedGpu as_gpu;
  long launches = gpu::kernel_launches();
  CHECK(tokens_on(kernel_stream()) == on_cpu);
  CHECK(gpu::kernel_launches() == launches);
}
