// choose_token in one op, compared with the ops that it is made of elsewhere.

#include <doctest/doctest.h>

#include "mlx/primitives.h"
#include "nightingale/backends/cpu/ops.h"
#include "ops/arrays.h"
#include "thread_count.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

class Chance {
 public:
  explicit Chance(uint32_t seed) : generator_(seed) {}

  uint32_t word() {
    return generator_();
  }
  int below(int count) {
    return word() % count;
  }
  float uniform() {
    return word() * 0x1p-32f;
  }
  template <typename T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(choices.size())];
  }

 private:
  std::mt19937 generator_;
};

// What one token is chosen from.
struct Choice {
  int rows = 1;
  std::vector<float> logits = {}; // [rows, seen.size()]
  std::vector<uint8_t> seen = {};
  int text = 1;
  std::vector<std::vector<float>> weights = {}; // for each head [1, text]
  std::vector<int> marks = std::vector<int>(ops::kMarks);
  std::vector<float> sums = std::vector<float>(ops::kSums);
  int last = 0;
  int position = 0;
  ops::TokenRules rules = {};

  int count() const {
    return seen.size();
  }
};

// Of memory of its own, which the composite writes into.
ops::Sampler sampler_of(const Choice& choice) {
  auto sampler =
      ops::Sampler::start(choice.rules, choice.count(), 0, cpu_stream());
  sampler.position = choice.position;
  sampler.token = mx::array({choice.last});
  sampler.seen = mx::array(choice.seen.data(), {choice.count()});
  sampler.alignment = {
      mx::array(choice.marks.data(), {ops::kMarks}),
      mx::array(choice.sums.data(), {ops::kSums})};
  return sampler;
}

template <typename Op>
ops::Sampler chosen_by(Op choose_token, const Choice& choice) {
  std::vector<mx::array> weights;
  for (const auto& head : choice.weights) {
    weights.push_back(array_of(head, {1, choice.text}));
  }
  mx::array logits(choice.logits.data(), {choice.rows, choice.count()});
  return choose_token(logits, weights, sampler_of(choice), cpu_stream());
}

bool same(const ops::Sampler& a, const ops::Sampler& b) {
  return values(a.token) == values(b.token) &&
      values(a.seen) == values(b.seen) && a.position == b.position &&
      values(a.alignment.marks) == values(b.alignment.marks) &&
      same_bits(a.alignment.sums, b.alignment.sums) &&
      values(a.report) == values(b.report);
}

bool is_same_in_one_op(const Choice& choice) {
  return same(
      chosen_by(cpu::choose_token, choice),
      chosen_by(backends::choose_token, choice));
}

void randomize_logits(Chance& chance, int count, Choice& choice) {
  choice.logits = noise(size_t(choice.rows) * count, chance.word());
  float scale = chance.one_of({0.1f, 1.0f, 3.0f, 12.0f, 12.0f, 1e6f});
  float step = chance.one_of({0.0f, 0.0f, 0.5f}); // a grid: many ties
  // The same in both rows: guidance makes NaN of infinities otherwise.
  float hole = chance.one_of({-kInfinity, -1e30f, kNaN, kInfinity});
  float holes = chance.one_of({0.0f, 0.0f, 0.0f, 0.001f, 0.3f});
  float offset = chance.one_of({0.0f, 0.0f, -50.0f, 300.0f});
  for (int i = 0; i < choice.rows * count; ++i) {
    float& x = choice.logits[i];
    x = x * scale + offset;
    x = step > 0.0f ? std::round(x / step) * step : x;
    if (i < count && chance.uniform() < holes) {
      x = hole;
    }
  }
}

void randomize_analyser(Chance& chance, Choice& choice) {
  choice.rules.analyser = true;
  choice.text = chance.one_of({1, 3, 5, 6, 20, 90});
  choice.weights.resize(chance.one_of({1, 2, 3}));
  float scale = chance.one_of({0.01f, 0.2f, 1.0f});
  for (auto& head : choice.weights) {
    head = noise(choice.text, chance.word());
    for (float& x : head) {
      x = std::fabs(x) * scale;
    }
  }
  auto& marks = choice.marks;
  marks[ops::kFrame] = chance.below(40);
  marks[ops::kTextPosition] = chance.below(choice.text);
  marks[ops::kStarted] = chance.below(2);
  marks[ops::kComplete] = chance.below(2);
  marks[ops::kLastToken] =
      chance.below(8) ? chance.below(choice.count()) : choice.last;
  marks[ops::kTokenCount] = 1 + marks[ops::kFrame];
  for (float& sum : choice.sums) {
    sum = chance.uniform() * chance.one_of({0.5f, 5.0f});
  }
}

Choice random_choice(Chance& chance, int count) {
  Choice choice{.rows = chance.one_of({1, 2, 2})};
  randomize_logits(chance, count, choice);
  float density = chance.one_of({0.0f, 0.02f, 0.5f, 1.0f});
  for (int i = 0; i < count; ++i) {
    choice.seen.push_back(chance.uniform() < density);
  }
  choice.last = chance.below(count);
  choice.position = chance.below(1000);
  auto& rules = choice.rules;
  auto& options = rules.options;
  options.cfg_weight =
      choice.rows == 1 ? 0.0f : chance.one_of({0.0f, 0.2f, 0.5f, 1.3f});
  options.temperature =
      chance.one_of({0.0f, 0.0001f, 0.05f, 0.3f, 0.8f, 0.8f, 1.0f, 5.0f});
  options.repetition_penalty = chance.one_of({1.0f, 1.2f, 2.0f, 0.7f});
  options.min_p = chance.one_of({0.0f, 0.0f, 0.05f, 0.05f, 0.3f, 1.0f, 1e-35f});
  options.top_p =
      chance.one_of({0.0f, 0.3f, 0.8f, 0.95f, 0.9999f, 1.0f, 1.0f, 1.0f, 1.0f});
  if (chance.below(3) == 0) {
    options.top_k = chance.one_of({1, 2, 30, 1000, 9000});
  }
  if (chance.below(3) == 0) {
    rules.order = ops::SamplingOrder::penalty_last;
    choice.position *= chance.below(2);
  }
  rules.limits.first_stop = chance.one_of({0, 20, 500});
  rules.limits.first_repeat = chance.one_of({3, 3, 1 << 30});
  rules.stop_token = chance.below(count);
  options.seed = chance.word() * 0x100000001ull;
  rules.sentence = chance.below(5);
  if (chance.below(2)) {
    randomize_analyser(chance, choice);
  }
  return choice;
}

int differences(Chance& chance, int cases, int count) {
  int different = 0;
  for (int i = 0; i < cases; ++i) {
    different += !is_same_in_one_op(random_choice(chance, count));
  }
  return different;
}

// Tokens of these logits, of which all options keep all.
Choice plain_choice(const std::vector<float>& logits) {
  Choice choice{.logits = logits, .seen = std::vector<uint8_t>(logits.size())};
  auto& options = choice.rules.options;
  options.cfg_weight = options.min_p = 0.0f;
  options.temperature = options.repetition_penalty = options.top_p = 1.0f;
  return choice;
}

int differences_at_positions(Choice choice, int positions) {
  int different = 0;
  for (choice.position = 1; choice.position <= positions; ++choice.position) {
    different += !is_same_in_one_op(choice);
  }
  return different;
}

} // namespace

TEST_CASE("choose_token in one op: the composite's result in random cases") {
  for (int threads : {1, 2}) {
    ThreadCount limit(threads);
    Chance chance(threads);
    for (int count : {1, 2, 7, 32, 33, 97, 500}) {
      CAPTURE(count);
      CHECK(differences(chance, 200, count) == 0);
    }
    for (int count : {6563, 8194}) {
      CAPTURE(count);
      CHECK(differences(chance, 150, count) == 0);
    }
  }
}

TEST_CASE("choose_token in one op: min_p keeps the same at its limit") {
  for (float min_p : {0.05f, 0.3f, 1.0f}) {
    for (float top : {0.0f, 7.3f, -1000.0f}) {
      // As many floats on either side of the limit.
      float limit = top + std::log(min_p);
      std::vector<float> logits{top};
      for (int step = -40; step <= 40; ++step) {
        float at = step < 0 ? -kInfinity : kInfinity;
        float x = limit;
        for (int i = 0; i < std::abs(step); ++i) {
          x = std::nextafter(x, at);
        }
        logits.push_back(std::min(x, top));
      }
      CAPTURE(min_p);
      CAPTURE(top);
      auto choice = plain_choice(logits);
      choice.rules.options.min_p = min_p;
      CHECK(differences_at_positions(choice, 30) == 0);
    }
  }
}

TEST_CASE("choose_token in one op: top_p keeps the same among equals") {
  std::vector<float> logits(24, -60.0f);
  for (int i = 4; i < 20; ++i) {
    logits[i] = i % 2 ? 0.0f : -0.0f;
  }
  for (float top_p : {0.0f, 0.125f, 0.3f, 0.5f, 0.51f, 0.875f, 0.999999f}) {
    CAPTURE(top_p);
    auto choice = plain_choice(logits);
    choice.rules.options.top_p = top_p;
    CHECK(differences_at_positions(choice, 30) == 0);
    choice.logits[10] = 0.001f;
    CHECK(differences_at_positions(choice, 30) == 0);
  }
}

TEST_CASE("choose_token in one op: a last penalty can bring any token back") {
  // A token that is 30 below another comes near it by the penalty.
  auto choice = plain_choice({40.0f, 10.0f, 9.0f, -3.0f, 41.0f});
  choice.seen = {1, 0, 0, 1, 1};
  choice.rules.order = ops::SamplingOrder::penalty_last;
  for (float penalty : {4.0f, 0.1f, 1e-30f, 1e38f}) {
    CAPTURE(penalty);
    choice.rules.options.repetition_penalty = penalty;
    CHECK(differences_at_positions(choice, 30) == 0);
  }
  choice.rules.options.repetition_penalty = 4.0f;
  choice.position = 1;
  CHECK(chosen_by(cpu::choose_token, choice).token.item<int>() != 3);
}

TEST_CASE("choose_token in one op: min_p of denormal probabilities") {
  // A last penalty on the first token leaves what is near the limit.
  std::vector<float> logits{100.0f};
  for (int i = -100; i < 100; ++i) {
    logits.push_back(100.0f + std::log(1e-42f) + (i + 0.5f) * 0.0002f);
  }
  auto choice = plain_choice(logits);
  choice.seen[0] = 1;
  choice.rules.order = ops::SamplingOrder::penalty_last;
  choice.rules.options.repetition_penalty = 1e30f;
  choice.rules.options.min_p = 1e-42f;
  CHECK(differences_at_positions(choice, 500) == 0);
}

TEST_CASE("choose_token in one op: many unlikely tokens are drawn from") {
  for (float below : {9.0f, 12.0f}) {
    auto choice = plain_choice(std::vector<float>(8194, -below));
    choice.logits[17] = 0.0f;
    CHECK(differences_at_positions(choice, 100) == 0);
  }
}

TEST_CASE("choose_token in one op: the first of equal scores is drawn") {
  // Sums near 2^19 are rounded to a 32nd, so that many are equal.
  std::vector<float> logits;
  for (int i = 0; i < 300; ++i) {
    logits.push_back(500000.0f - i * 0x1p-5f);
  }
  auto choice = plain_choice(logits);
  choice.rules.options.top_p = 0.9f;
  CHECK(differences_at_positions(choice, 300) == 0);
}

TEST_CASE("choose_token in one op: tokens that nothing is known of give 0") {
  for (float x : {-kInfinity, kInfinity, kNaN}) {
    auto choice = plain_choice(std::vector<float>(9, x));
    CHECK(chosen_by(cpu::choose_token, choice).token.item<int>() == 0);
    CHECK(differences_at_positions(choice, 3) == 0);
  }
}

TEST_CASE("choose_token is one op, which leaves its inputs alone") {
  auto s = cpu_stream();
  Chance chance(3);
  for (auto order :
       {ops::SamplingOrder::penalty_first, ops::SamplingOrder::penalty_last}) {
    auto choice = random_choice(chance, 97);
    choice.rules.order = order;
    choice.position = 0;
    auto before = sampler_of(choice);
    auto logits = noise_array({2, 97}, 1), weights = noise_array({2, 9}, 2);
    auto after = ops::choose_token(logits, {weights}, before, s);
    CHECK(std::string(after.token.primitive().name()) == "ChooseToken");
    CHECK(after.token.primitive_id() == after.seen.primitive_id());
    mx::eval(after.token);
    // As where a failed pass is undone and its steps are computed once more.
    CHECK(same(before, sampler_of(choice)));
    CHECK(same(ops::choose_token(logits, {weights}, before, s), after));
  }
}

TEST_CASE(
    "steps of choose_token that are evaluated at once follow each other") {
  Chance chance(5);
  auto choice = random_choice(chance, 200);
  choice.rules = {};
  choice.rules.analyser = true;
  choice.rules.stop_token = 9;
  choice.rules.limits.first_repeat = 1 << 30;
  choice.position = 0;
  auto in_one = sampler_of(choice), composite = sampler_of(choice);
  std::vector<mx::array> tokens, expected;
  for (int step = 0; step < 40; ++step) {
    int rows = step == 0 ? 2 : 1;
    auto logits = noise_array({2, 200}, step);
    std::vector<mx::array> weights(3, noise_array({rows, 30}, 100 + step));
    auto s = cpu_stream();
    in_one = cpu::choose_token(logits, weights, in_one, s);
    composite = backends::choose_token(logits, weights, composite, s);
    tokens.push_back(in_one.token);
    expected.push_back(composite.token);
  }
  auto s = cpu_stream();
  CHECK(
      values(mx::concatenate(tokens, 0, s)) ==
      values(mx::concatenate(expected, 0, s)));
  CHECK(same(in_one, composite));
}

TEST_CASE("choose_token takes every layout and type of its inputs") {
  Chance chance(7);
  auto choice = random_choice(chance, 40);
  choice.rules = {};
  choice.rules.analyser = true;
  choice.rules.stop_token = 9;
  auto s = cpu_stream();
  auto logits = noise_array({2, 40}, 1), weights = noise_array({1, 12}, 2);
  check_views(logits, [&](auto& v) {
    return cpu::choose_token(v, {weights}, sampler_of(choice), s).token;
  });
  check_views(weights, [&](auto& v) {
    return cpu::choose_token(logits, {v, v}, sampler_of(choice), s)
        .alignment.sums;
  });
  check_views(sampler_of(choice).seen, [&](auto& v) {
    auto sampler = sampler_of(choice);
    sampler.seen = mx::contiguous(v, false, s);
    return cpu::choose_token(logits, {weights}, sampler, s).token;
  });
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto typed = mx::astype(logits, dtype, s);
    CHECK(same(
        cpu::choose_token(typed, {weights}, sampler_of(choice), s),
        backends::choose_token(typed, {weights}, sampler_of(choice), s)));
  }
}
