#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr float kRemoved = -std::numeric_limits<float>::infinity();

class Chance {
 public:
  explicit Chance(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}

  uint32_t word() {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return state_ >> 32;
  }
  int below(int count) {
    return word() % count;
  }
  float uniform() {
    return (word() >> 8) * 0x1p-24f;
  }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  uint64_t state_;
};

// What one token is chosen from.
struct Choice {
  int rows = 1, count = 0;
  std::vector<float> logits = {}; // [rows, count]
  std::vector<uint8_t> seen = {};
  std::vector<std::vector<float>> weights = {}; // for each head [R, text]
  int last = 0;
  int position = 0;
  ops::TokenRules rules = {};
  mx::Dtype dtype = mx::float32;
};

// A sampler of its own memory: choosing on the CPU writes into it.
ops::Sampler sampler_of(const Choice& choice) {
  auto sampler =
      ops::Sampler::start(choice.rules, choice.count, 0, cpu_stream());
  sampler.position = choice.position;
  sampler.token = mx::array({choice.last});
  sampler.seen = mx::array(choice.seen.data(), {choice.count});
  return sampler;
}

mx::array logits_of(const Choice& choice) {
  return array_of(choice.logits, {choice.rows, choice.count}, choice.dtype);
}

ops::Sampler chosen_by_kernel(const Choice& choice) {
  return gpu::choose_token(
      logits_of(choice), {}, sampler_of(choice), kernel_stream());
}

ops::Sampler chosen_by_cpu(const Choice& choice) {
  return ops::choose_token(
      logits_of(choice), {}, sampler_of(choice), cpu_stream());
}

bool same(const ops::Sampler& a, const ops::Sampler& b) {
  return values(a.token) == values(b.token) &&
      values(a.seen) == values(b.seen) && a.position == b.position;
}

int token_of(const Choice& choice) {
  auto by_kernel = chosen_by_kernel(choice);
  CHECK(same(by_kernel, chosen_by_cpu(choice)));
  return by_kernel.token.item<int>();
}

Choice random_choice(Chance& chance, int rows, int count, mx::Dtype dtype) {
  Choice choice{.rows = rows, .count = count, .dtype = dtype};
  choice.logits = noise(size_t(rows) * count, chance.word());
  float scale = chance.one_of({0.1f, 1.0f, 3.0f, 12.0f});
  float step = chance.one_of({0.0f, 0.0f, 0.5f}); // a grid: many ties
  float holes = chance.one_of({0.0f, 0.0f, 0.3f});
  for (int i = 0; i < rows * count; ++i) {
    float& x = choice.logits[i];
    x *= scale;
    x = step > 0.0f ? std::round(x / step) * step : x;
    // The same in both rows: guidance makes NaN of anything else.
    if (i < count && chance.uniform() < holes) {
      x = -1e30f;
    }
  }
  float density = chance.one_of({0.0f, 0.02f, 0.5f, 1.0f});
  for (int i = 0; i < count; ++i) {
    choice.seen.push_back(chance.uniform() < density);
  }
  choice.last = chance.below(count);
  choice.position = chance.below(1000);
  auto& options = choice.rules.options;
  options.cfg_weight = chance.one_of({0.2f, 0.5f, 1.3f});
  options.temperature = chance.one_of({0.0f, 0.0001f, 0.3f, 0.8f, 1.0f, 5.0f});
  options.repetition_penalty = chance.one_of({1.0f, 1.2f, 2.0f, 0.7f});
  options.min_p = chance.one_of({0.0f, 0.05f, 0.05f, 0.3f, 1.0f});
  options.top_p =
      chance.one_of({0.0f, 0.3f, 0.8f, 0.95f, 1.0f, 1.0f, 1.0f, 1.0f});
  if (chance.below(3) == 0) {
    options.top_k = chance.one_of({1, 2, 30, 1000});
  }
  if (chance.below(3) == 0) {
    choice.rules.order = ops::SamplingOrder::penalty_last;
    choice.position *= chance.below(2);
  }
  choice.rules.limits.first_stop = chance.one_of({0, 500});
  choice.rules.stop_token = chance.below(count);
  options.seed = chance.word() * 0x100000001ull;
  choice.rules.sentence = chance.word() % 5;
  return choice;
}

int disagreements(Chance& chance, int cases, int rows, int count, mx::Dtype t) {
  int different = 0;
  for (int i = 0; i < cases; ++i) {
    auto choice = random_choice(chance, rows, count, t);
    different += !same(chosen_by_kernel(choice), chosen_by_cpu(choice));
  }
  return different;
}

// Eight likely tokens of twenty: the others are far behind.
Choice eight_likely() {
  Choice choice{.count = 20, .seen = std::vector<uint8_t>(20)};
  choice.logits.assign(20, -50.0f);
  for (int i = 4; i < 12; ++i) {
    choice.logits[i] = 1.0f;
  }
  auto& options = choice.rules.options;
  options.temperature = options.repetition_penalty = 1.0f;
  options.min_p = 0.0f;
  return choice;
}

std::vector<int> tokens_at_positions(Choice choice, int count) {
  std::vector<int> tokens;
  for (choice.position = 0; choice.position < count; ++choice.position) {
    tokens.push_back(token_of(choice));
  }
  return tokens;
}

} // namespace

TEST_CASE("kernel sample: the CPU sampler's token in 10,000 random cases") {
  Chance chance(1);
  if (emulated()) {
    CHECK(disagreements(chance, 6000, 2, 97, mx::float32) == 0);
    CHECK(disagreements(chance, 3000, 1, 100, mx::float16) == 0);
    CHECK(disagreements(chance, 900, 2, 501, mx::bfloat16) == 0);
    CHECK(disagreements(chance, 100, 2, 8194, mx::float16) == 0);
  } else {
    CHECK(disagreements(chance, 4000, 2, 8194, mx::float32) == 0);
    CHECK(disagreements(chance, 3000, 2, 8194, mx::float16) == 0);
    CHECK(disagreements(chance, 3000, 1, 8194, mx::bfloat16) == 0);
  }
}

TEST_CASE("kernel sample: few tokens and sizes that fill no group") {
  Chance chance(2);
  for (int count : {1, 7, 33, 1024}) {
    CAPTURE(count);
    CHECK(disagreements(chance, 30, 2, count, mx::float32) == 0);
  }
}

TEST_CASE("kernel sample: one launch, which leaves its inputs alone") {
  Chance chance(3);
  auto choice = random_choice(chance, 2, 97, mx::float32);
  choice.seen.assign(97, 0);
  auto before = sampler_of(choice);
  chosen_by_kernel(choice);
  long launches = gpu::kernel_launches();
  auto after =
      gpu::choose_token(logits_of(choice), {}, before, kernel_stream());
  CHECK(gpu::kernel_launches() == launches + 1);
  CHECK(values(before.seen) == Values(97));
  Values expected(97);
  expected[after.token.item<int>()] = 1;
  CHECK(values(after.seen) == expected);
  CHECK(after.position == before.position + 1);
}

TEST_CASE("kernel sample: a group of any size chooses the same") {
  for (int threads : {512, 256, 128, 64, 32}) {
    CAPTURE(threads);
    KernelLimits smaller({.threads = threads});
    Chance chance(4);
    CHECK(disagreements(chance, 4, 2, 8194, mx::float16) == 0);
  }
}

TEST_CASE(
    "kernel sample: among equals the first is most likely, the last stays") {
  auto choice = eight_likely();
  choice.rules.options.temperature = 0.0f;
  CHECK(token_of(choice) == 4);
  choice.rules.options.temperature = 1.0f;
  choice.rules.options.top_p = 0.0f;
  CHECK(token_of(choice) == 11);
}

TEST_CASE("kernel sample: top_p cuts equals in the order of their index") {
  for (float top_p : {0.1f, 0.124f, 0.13f, 0.3f, 0.49f, 0.51f, 0.8f, 0.95f}) {
    CAPTURE(top_p);
    auto choice = eight_likely();
    choice.rules.options.top_p = top_p;
    auto tokens = tokens_at_positions(choice, 60);
    // k of eight go as long as k / 8 is at most 1 - top_p.
    int first = 4 + static_cast<int>(8.0f * (1.0f - top_p));
    CHECK(std::ranges::min(tokens) == first);
    CHECK(std::ranges::max(tokens) == 11);
  }
}

TEST_CASE("kernel sample: top_p takes zero and minus zero for equals") {
  auto choice = eight_likely();
  for (int i = 4; i < 12; ++i) {
    choice.logits[i] = i % 2 ? -0.0f : 0.0f;
  }
  choice.rules.options.top_p = 0.49f;
  auto tokens = tokens_at_positions(choice, 60);
  CHECK(std::ranges::min(tokens) == 8);
  choice.rules.options.top_p = 0.0f;
  CHECK(token_of(choice) == 11);
}

TEST_CASE("kernel sample: min_p of 1 keeps the most likely and its equals") {
  auto choice = eight_likely();
  choice.rules.options.min_p = 1.0f;
  choice.logits[9] = 0.999999f;
  auto tokens = tokens_at_positions(choice, 60);
  CHECK(std::ranges::count(tokens, 9) == 0);
  CHECK(std::ranges::min(tokens) == 4);
  CHECK(std::ranges::max(tokens) == 11);
}

TEST_CASE(
    "kernel sample: top_k keeps the most likely and the equals of the last") {
  auto choice = eight_likely();
  choice.logits[9] = 2.0f;
  choice.rules.options.top_k = 1;
  CHECK(std::ranges::count(tokens_at_positions(choice, 20), 9) == 20);
  choice.rules.options.top_k = 2; // seven equals share the second place
  auto tokens = tokens_at_positions(choice, 60);
  CHECK(std::ranges::min(tokens) == 4);
  CHECK(std::ranges::max(tokens) == 11);
}

TEST_CASE("kernel sample: a last penalty can bring back what was far behind") {
  auto choice = eight_likely();
  choice.logits[6] = 60.0f;
  choice.seen[6] = 1;
  choice.rules.order = ops::SamplingOrder::penalty_last;
  choice.rules.options.repetition_penalty = 100.0f;
  auto tokens = tokens_at_positions(choice, 60);
  CHECK(std::ranges::count(tokens, 6) < 20); // 0.6 is below the others' 1
  choice.rules.options.top_p = 0.95f; // leaves it alone before the penalty
  CHECK(std::ranges::count(tokens_at_positions(choice, 20), 6) == 20);
}

TEST_CASE("kernel sample: what cannot be is never chosen") {
  auto choice = eight_likely();
  std::fill(choice.logits.begin(), choice.logits.end(), kRemoved);
  choice.logits[17] = -3e38f;
  choice.seen.assign(20, 1);
  for (float top_p : {1.0f, 0.9f}) {
    choice.rules.options.top_p = top_p;
    CHECK(token_of(choice) == 17);
  }
  choice.logits[17] = kRemoved;
  CHECK(token_of(choice) == 0);
}

TEST_CASE("kernel sample: the stop token waits for first_stop") {
  auto choice = eight_likely();
  choice.logits[7] = 90.0f;
  choice.rules.stop_token = 7;
  choice.rules.limits.first_stop = 5;
  for (choice.position = 3; choice.position < 8; ++choice.position) {
    CHECK((token_of(choice) == 7) == (choice.position >= 5));
  }
}

TEST_CASE("kernel sample: the draws are those of draw_key") {
  auto choice = eight_likely();
  std::fill(choice.logits.begin(), choice.logits.end(), 0.0f);
  choice.rules.options.seed = 0x123456789abcdefull;
  choice.rules.sentence = 3;
  for (choice.position = 0; choice.position < 40; ++choice.position) {
    auto position = static_cast<uint32_t>(choice.position);
    auto key = draw_key(
        {choice.rules.options.seed, DrawStage::speech_token, 3, position});
    uint32_t best = 0;
    for (uint32_t i = 0; i < 20; ++i) {
      bool higher =
          random_word(key, i, 20) >> 9 > random_word(key, best, 20) >> 9;
      best = higher ? i : best;
    }
    CHECK(token_of(choice) == int(best));
  }
}

TEST_CASE("more heads or tokens than the kernel takes run without it") {
  auto launches = [](const mx::array& logits, std::vector<mx::array> weights) {
    ops::TokenRules rules{.analyser = !weights.empty(), .text_tokens = 9};
    auto sampler =
        ops::Sampler::start(rules, logits.shape(1), 0, kernel_stream());
    long before = gpu::kernel_launches();
    mx::eval(
        gpu::choose_token(logits, weights, sampler, kernel_stream()).token);
    return gpu::kernel_launches() - before;
  };
  mx::array logits = mx::zeros({2, 8194}), weights = mx::zeros({1, 9});
  auto heads = [&](int n) { return std::vector<mx::array>(n, weights); };
  CHECK(launches(logits, {}) == 1);
  CHECK(launches(logits, heads(4)) == 1);
  CHECK(launches(logits, heads(5)) == 0);
  CHECK(launches(logits, {mx::zeros({3, 9})}) == 0);
  CHECK(launches(mx::zeros({1, 16384}), {}) == 0);
}
