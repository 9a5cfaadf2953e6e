#include "nightingale/ops/sampling.h"

#include <doctest/doctest.h>

#include <numeric>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr double kRemoved = -std::numeric_limits<double>::infinity();

Values softmax_reference(const Values& x) {
  double top = *std::ranges::max_element(x), sum = 0.0;
  Values p;
  for (double v : x) {
    p.push_back(std::exp(v - top));
    sum += p.back();
  }
  for (double& v : p) {
    v /= sum;
  }
  return p;
}

SpeechOptions sampling(
    float temperature,
    float repetition_penalty,
    float min_p,
    float top_p) {
  return {
      .temperature = temperature,
      .repetition_penalty = repetition_penalty,
      .min_p = min_p,
      .top_p = top_p};
}

constexpr auto kPenaltyFirst = ops::SamplingOrder::penalty_first;
constexpr auto kPenaltyLast = ops::SamplingOrder::penalty_last;

void penalise(Values& x, const Values& seen, double penalty) {
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] *= !seen[i] ? 1.0 : x[i] < 0.0 ? penalty : 1.0 / penalty;
  }
}

Values filter_reference(
    Values x,
    const Values& seen,
    const SpeechOptions& options,
    ops::SamplingOrder order_of_filters = kPenaltyFirst) {
  bool penalty_last = order_of_filters == kPenaltyLast;
  if (!penalty_last) {
    penalise(x, seen, options.repetition_penalty);
  }
  auto best = std::ranges::max_element(x) - x.begin();
  if (options.temperature < ops::kArgmaxTemperature) {
    Values only(x.size(), kRemoved);
    only[best] = x[best];
    return only;
  }
  for (double& v : x) {
    v /= options.temperature;
  }
  int count = x.size(), top_k = options.top_k;
  if (top_k > 0 && top_k < count) {
    Values sorted = x;
    std::ranges::sort(sorted, std::greater());
    for (double& v : x) {
      v = v < sorted[top_k - 1] ? kRemoved : v;
    }
  }
  Values p = softmax_reference(x);
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = p[i] < options.min_p * p[best] ? kRemoved : x[i];
  }
  p = softmax_reference(x);
  std::vector<int> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int i) { return x[i]; });
  double tail = 0.0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    tail += p[order[i]];
    // top_p 1 keeps all that can be drawn at all.
    bool in_tail = tail <= 1.0 - options.top_p && options.top_p < 1.0f;
    x[order[i]] = in_tail ? kRemoved : x[order[i]];
  }
  if (penalty_last) {
    penalise(x, seen, options.repetition_penalty);
  }
  return x;
}

mx::array bytes_array(const std::vector<uint8_t>& bytes) {
  return mx::array(bytes.data(), {static_cast<int>(bytes.size())});
}

} // namespace

TEST_CASE("guide moves away from the unconditioned row") {
  for (int count : {1, 5, 8194}) {
    auto logits = noise_array({2, count}, 1);
    Values x = values(logits), expected;
    for (int i = 0; i < count; ++i) {
      expected.push_back(x[i] + 0.7f * (x[i] - x[count + i]));
    }
    auto y = cpu::guide(logits, 0.7f, cpu_stream());
    CHECK(y.shape() == mx::Shape{count});
    CHECK(relative_error(y, expected) < 3e-7);
    y = reference::guide(logits, 0.7f, graph_stream());
    CHECK(relative_error(y, expected) < 3e-7);
  }
}

TEST_CASE("guide passes a single row on") {
  auto logits = noise_array({1, 77}, 1);
  CHECK(values(cpu::guide(logits, 3.0f, cpu_stream())) == values(logits));
  CHECK(
      values(reference::guide(logits, 3.0f, graph_stream())) == values(logits));
}

TEST_CASE("the filter chain keeps what the reference keeps") {
  for (int count : {2, 100, 8194}) {
    auto numbers = noise(count, count);
    std::vector<uint8_t> seen(count);
    for (int i = 0; i < count; ++i) {
      numbers[i] *= 3.0f;
      seen[i] = i % 7 == 1;
    }
    auto logits = array_of(numbers, {count});
    Values seen_values(seen.begin(), seen.end());
    for (const SpeechOptions& options :
         {sampling(0.8f, 1.2f, 0.05f, 1.0f),
          sampling(0.8f, 2.0f, 0.0f, 0.9f),
          sampling(1.0f, 1.0f, 0.0f, 1.0f),
          sampling(0.3f, 1.2f, 0.02f, 0.5f),
          sampling(1.7f, 1.2f, 0.2f, 0.75f),
          sampling(0.8f, 1.2f, 1.0f, 1.0f),
          sampling(0.8f, 1.2f, 0.0f, 0.0f),
          sampling(0.0f, 1.2f, 0.05f, 0.9f)}) {
      CAPTURE(count);
      CAPTURE(options.temperature);
      CAPTURE(options.min_p);
      CAPTURE(options.top_p);
      for (int top_k : {0, 1, 40, 1000}) {
        for (auto order : {kPenaltyFirst, kPenaltyLast}) {
          CAPTURE(top_k);
          auto with = options;
          with.top_k = top_k;
          Values expected =
              filter_reference(values(logits), seen_values, with, order);
          for (auto [backend, filter_logits, s] :
               backend_ops(cpu::filter_logits, reference::filter_logits)) {
            CAPTURE(backend);
            auto y = filter_logits(logits, bytes_array(seen), with, order, s);
            CHECK(relative_error(y, expected) < 1e-6);
          }
        }
      }
    }
  }
}

TEST_CASE("a last penalty sees only what the other filters have kept") {
  auto logits = array_of({2.0f, 1.9f, -1.0f, -1.1f}, {4});
  auto seen = bytes_array({1, 0, 1, 0});
  for (auto [backend, filter_logits, s] :
       backend_ops(cpu::filter_logits, reference::filter_logits)) {
    CAPTURE(backend);
    auto options = sampling(0.5f, 4.0f, 0.0f, 1.0f);
    options.top_k = 3;
    auto y = values(filter_logits(logits, seen, options, kPenaltyLast, s));
    CHECK(y[0] == doctest::Approx(1.0)); // 2 / 0.5 / 4
    CHECK(y[1] == doctest::Approx(3.8));
    CHECK(y[2] == doctest::Approx(-8.0));
    CHECK(y[3] == kRemoved);
    // At temperature 0 one token is left, and the penalty changes no choice.
    options.temperature = 0.0f;
    y = values(filter_logits(logits, seen, options, kPenaltyLast, s));
    CHECK(y[0] > kRemoved);
    CHECK(y[1] == kRemoved);
  }
}

TEST_CASE("top-k keeps all equals of the last token that it keeps") {
  auto logits = array_of({3.0f, 1.0f, 1.0f, 1.0f, 0.5f}, {5});
  auto seen = bytes_array({0, 0, 0, 0, 0});
  for (auto [backend, filter_logits, s] :
       backend_ops(cpu::filter_logits, reference::filter_logits)) {
    CAPTURE(backend);
    auto options = sampling(1.0f, 1.0f, 0.0f, 1.0f);
    options.top_k = 2;
    auto y = values(filter_logits(logits, seen, options, kPenaltyLast, s));
    CHECK(y[3] == 1.0);
    CHECK(y[4] == kRemoved);
  }
}

TEST_CASE("with a last penalty the start of speech is seen once") {
  auto s = cpu_stream();
  for (auto order : {kPenaltyFirst, kPenaltyLast}) {
    ops::TokenRules rules{.options = {.temperature = 0.0f}, .order = order};
    auto sampler = ops::Sampler::start(rules, 5, 4, s);
    CHECK(values(sampler.seen) == Values{0, 0, 0, 0, 1});
    auto logits = array_of({0.0f, 9.0f, 0.0f, 0.0f, 0.0f}, {1, 5});
    sampler = ops::choose_token(logits, {}, sampler, s);
    double start = order == kPenaltyFirst ? 1 : 0;
    CHECK(values(sampler.seen) == Values{0, 1, 0, 0, start});
    logits = array_of({0.0f, 0.0f, 0.0f, 0.0f, 9.0f}, {1, 5});
    sampler = ops::choose_token(logits, {}, sampler, s);
    CHECK(values(sampler.seen) == Values{0, 1, 0, 0, 1});
  }
}

TEST_CASE("the repetition penalty can change the most likely token") {
  auto logits = array_of({2.0f, 1.9f, -1.0f, -1.1f}, {4});
  auto seen = bytes_array({1, 0, 1, 0});
  for (auto [backend, filter_logits, s] :
       backend_ops(cpu::filter_logits, reference::filter_logits)) {
    CAPTURE(backend);
    SpeechOptions greedy{.temperature = 0.0f, .repetition_penalty = 1.2f};
    auto y = values(filter_logits(logits, seen, greedy, kPenaltyFirst, s));
    CHECK(y[0] == kRemoved);
    CHECK(y[1] == doctest::Approx(1.9));
    auto all = sampling(1.0f, 1.2f, 0.0f, 1.0f);
    y = values(filter_logits(logits, seen, all, kPenaltyFirst, s));
    CHECK(y[0] == doctest::Approx(2.0 / 1.2));
    CHECK(y[2] == doctest::Approx(-1.2));
    CHECK(y[3] == doctest::Approx(-1.1));
  }
}

TEST_CASE("the filter chain keeps forbidden tokens out") {
  constexpr float removed = -std::numeric_limits<float>::infinity();
  auto logits = array_of({removed, 1.0f, 0.5f}, {3});
  auto seen = bytes_array({1, 0, 0});
  for (auto [backend, filter_logits, s] :
       backend_ops(cpu::filter_logits, reference::filter_logits)) {
    for (float top_p : {1.0f, 0.99f}) {
      CAPTURE(backend);
      auto options = sampling(0.8f, 1.2f, 0.05f, top_p);
      auto y = values(filter_logits(logits, seen, options, kPenaltyFirst, s));
      CHECK(y[0] == kRemoved);
      CHECK(y[1] == doctest::Approx(1.25));
      CHECK(y[2] == doctest::Approx(0.625));
    }
  }
}

TEST_CASE("draw_token draws by Gumbel-max from the words of its key") {
  for (int count : {1, 2, 101, 8194}) {
    auto logits = noise_array({count}, 5);
    Values x = values(logits);
    for (uint32_t position = 0; position < 50; ++position) {
      auto key = draw_key({9, DrawStage::speech_token, 0, position});
      int best = 0;
      double highest = kRemoved;
      for (int i = 0; i < count; ++i) {
        double u = ((random_word(key, i, count) >> 9) + 0.5) * 0x1p-23;
        double score = x[i] - std::log(-std::log(u));
        best = score > highest ? i : best;
        highest = std::max(highest, score);
      }
      CHECK(cpu::draw_token(logits, key, cpu_stream()).item<int>() == best);
      CHECK(
          reference::draw_token(logits, key, graph_stream()).item<int>() ==
          best);
    }
  }
}

TEST_CASE("draws are as frequent as softmax says") {
  auto logits = array_of({0.0f, 1.0f, 2.0f, -1.0f}, {4});
  Values p = softmax_reference(values(logits));
  std::vector<int> counts(4);
  constexpr int draws = 20000;
  for (uint32_t i = 0; i < draws; ++i) {
    auto key = draw_key({1, DrawStage::speech_token, 0, i});
    ++counts[cpu::draw_token(logits, key, cpu_stream()).item<int>()];
  }
  for (int i = 0; i < 4; ++i) {
    // Four standard deviations.
    double slack = 4.0 * std::sqrt(draws * p[i] * (1.0 - p[i]));
    CHECK(std::fabs(counts[i] - draws * p[i]) < slack);
  }
}

TEST_CASE("draw_token never draws what was removed") {
  constexpr float removed = -std::numeric_limits<float>::infinity();
  auto logits = array_of({removed, removed, -30.0f, removed}, {4});
  for (uint32_t position = 0; position < 20; ++position) {
    auto key = draw_key({3, DrawStage::speech_token, 1, position});
    CHECK(cpu::draw_token(logits, key, cpu_stream()).item<int>() == 2);
    CHECK(reference::draw_token(logits, key, graph_stream()).item<int>() == 2);
  }
}

TEST_CASE("forbid_token removes one token and leaves its input alone") {
  auto logits = noise_array({9}, 1);
  Values expected = values(logits);
  Values before = expected;
  expected[4] = kRemoved;
  CHECK(values(cpu::forbid_token(logits, 4, cpu_stream())) == expected);
  CHECK(values(reference::forbid_token(logits, 4, graph_stream())) == expected);
  CHECK(values(logits) == before);
}

TEST_CASE("mark_seen sets one place, step after step") {
  for (auto [backend, mark_seen, s] :
       backend_ops(cpu::mark_seen, reference::mark_seen)) {
    CAPTURE(backend);
    auto seen = mx::zeros({6}, mx::uint8, s);
    for (int token : {5, 0, 5, 3}) {
      seen = mark_seen(seen, mx::array({token}), s);
    }
    CHECK(values(seen) == Values{1, 0, 0, 1, 0, 1});
  }
}

TEST_CASE("the sampling ops take every layout of their inputs") {
  auto logits = noise_array({2, 10}, 1), row = noise_array({10}, 2);
  auto options = sampling(0.8f, 1.5f, 0.01f, 0.95f);
  auto seen = bytes_array({1, 0, 0, 1, 1, 0, 1, 0, 1, 0});
  auto key = draw_key({5, DrawStage::speech_token, 0, 0});
  auto s = cpu_stream();
  check_views(logits, [&](auto& v) { return cpu::guide(v, 0.5f, s); });
  check_views(row, [&](auto& v) {
    return cpu::filter_logits(v, seen, options, kPenaltyFirst, s);
  });
  check_views(seen, [&](auto& v) {
    return cpu::filter_logits(row, v, options, kPenaltyFirst, s);
  });
  check_views(row, [&](auto& v) { return cpu::draw_token(v, key, s); });
  check_views(row, [&](auto& v) { return cpu::forbid_token(v, 3, s); });
  check_views(seen, [&](auto& v) {
    return cpu::mark_seen(mx::contiguous(v, false, s), mx::array({7}), s);
  });
}
