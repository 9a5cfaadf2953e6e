#include "arrays.h"
#include "mlx/ops.h"
#include "mlx/random.h"
#include "nightingale/ops/alignment.h"
#include "nightingale/ops/sampling.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

constexpr int kVocabulary = 8194, kStop = 6562;

mx::array logits_of(int rows) {
  auto s = cpu_stream();
  auto key = mx::random::key(1);
  auto x =
      mx::random::normal({rows, kVocabulary}, mx::float32, 0.0f, 3.0f, key, s);
  mx::eval(x);
  return x;
}

// From the logits of a guidance pair and what three heads attend to, to the
// next token.
void choose_token(
    benchmark::State& state,
    const SpeechOptions& options,
    ops::SamplingOrder order) {
  auto s = cpu_stream();
  auto logits = logits_of(2);
  std::vector<mx::array> weights(3, warm({1, 100}));
  ops::TokenRules rules{.options = options, .order = order, .analyser = true};
  rules.limits = {.after_end = 1e30f, .first_repeat = 1 << 30}; // never stops
  rules.stop_token = kStop;
  auto sampler = ops::Sampler::start(rules, kVocabulary, 0, s);
  Work work{2.0 * kVocabulary * sizeof(float), 0.0};
  run(state, work, [&] {
    sampler = ops::choose_token(logits, weights, sampler, s);
    return sampler.token;
  });
}

// The same in several ops, without the analyser.
void sampling_chain(benchmark::State& state, const SpeechOptions& options) {
  auto s = cpu_stream();
  auto logits = logits_of(2);
  auto seen = mx::zeros({kVocabulary}, mx::uint8, s);
  uint32_t position = 0;
  Work work{2.0 * kVocabulary * sizeof(float), 0.0};
  run(state, work, [&] {
    auto guided = ops::guide(logits, 0.5f, s);
    auto kept = ops::filter_logits(
        guided, seen, options, ops::SamplingOrder::penalty_first, s);
    auto key = draw_key({1, DrawStage::speech_token, 0, position++});
    auto token = ops::draw_token(kept, key, s);
    seen = ops::mark_seen(seen, token, s);
    return seen;
  });
}

void alignment_step(benchmark::State& state) {
  auto s = cpu_stream();
  auto logits = mx::reshape(logits_of(1), {-1}, s);
  mx::eval(logits);
  int text = state.range(0);
  std::vector<mx::array> weights(3, warm({1, text}));
  mx::array token({7});
  auto start = ops::AlignmentState::start();
  Work work{(2.0 * kVocabulary + 3 * text) * sizeof(float), 0.0};
  run(state, work, [&] {
    return ops::alignment_step({weights, logits, token, kStop}, start, s)
        .logits;
  });
}

const SpeechOptions kDefault{};
const SpeechOptions kTopP{.top_p = 0.9f};
const SpeechOptions kTopKAndP{.min_p = 0.0f, .top_p = 0.95f, .top_k = 1000};
const SpeechOptions kGreedy{.temperature = 0.0f};

constexpr auto kFirst = ops::SamplingOrder::penalty_first;
constexpr auto kLast = ops::SamplingOrder::penalty_last;

BENCHMARK_CAPTURE(choose_token, default, kDefault, kFirst)->UseRealTime();
BENCHMARK_CAPTURE(choose_token, top_p, kTopP, kFirst)->UseRealTime();
BENCHMARK_CAPTURE(choose_token, top_k_p, kTopKAndP, kLast)->UseRealTime();
BENCHMARK_CAPTURE(choose_token, greedy, kGreedy, kFirst)->UseRealTime();
BENCHMARK_CAPTURE(sampling_chain, default, kDefault)->UseRealTime();
BENCHMARK_CAPTURE(sampling_chain, top_p, kTopP)->UseRealTime();
BENCHMARK_CAPTURE(sampling_chain, greedy, kGreedy)->UseRealTime();
BENCHMARK(alignment_step)->Arg(100)->UseRealTime();

} // namespace

} // namespace nightingale::bench
