// One op for all that choosing a token takes. It writes into none of its
// inputs: a step that is undone is computed again from the same sampler.

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "nightingale/backends/cpu/alignment.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/sampling.h"

namespace nightingale::cpu {

namespace {

struct Guided;
struct Scaled;
struct Listed;

// A token that may be drawn.
struct Candidate {
  float x;
  int token;

  // The order in which top-p removes tokens.
  bool operator<(const Candidate& other) const {
    return x < other.x || (x == other.x && token < other.token);
  }
};

using Candidates = std::span<Candidate>;

// Few tokens of a vocabulary matter: it is read in blocks, whose loops have no
// branches and no number that waits for the one before.
constexpr int kBlock = 32;

// The largest of x, NaN aside.
float highest_of(const float* x, int count) {
  float highest[kBlock];
  std::fill_n(highest, kBlock, kRemoved);
  for (int begin = 0; begin < count; begin += kBlock) {
    int width = std::min(kBlock, count - begin);
    for (int i = 0; i < width; ++i) {
      float y = x[begin + i];
      highest[i] = y > highest[i] ? y : highest[i];
    }
  }
  return *std::max_element(highest, highest + kBlock);
}

// The tokens that are not below `least`, and those of NaN, in their order.
Candidates list_from(const float* x, int count, float least) {
  auto* list = scratch<Listed, Candidate>(count);
  size_t size = 0;
  for (int begin = 0; begin < count; begin += kBlock) {
    int end = std::min(begin + kBlock, count), listed = 0;
    for (int i = begin; i < end; ++i) {
      listed += !(x[i] < least);
    }
    for (int i = begin; i < end && listed > 0; ++i) {
      list[size] = {x[i], i};
      size += !(x[i] < least);
    }
  }
  return {list, size};
}

// Those of `all` that top-p keeps.
std::optional<Candidates>
keep_top_p(Candidates all, float highest, float top_p) {
  // The same sums in another order, and of probabilities that were rounded,
  // differ by less.
  constexpr double unsure = 1e-6;
  auto weight = [&](const Candidate& each) {
    return static_cast<double>(std::exp(each.x - highest));
  };
  double sum = 0.0;
  for (const auto& each : all) {
    sum += weight(each);
  }
  double most = (1.0 - top_p) * sum, tail = sum;
  auto kept = all.end();
  std::make_heap(all.begin(), kept);
  while (kept != all.begin()) {
    bool has_kept = kept != all.end();
    if (has_kept && std::fabs(tail - most) < unsure * sum) {
      return std::nullopt;
    }
    if (has_kept && tail < most) {
      break;
    }
    std::pop_heap(all.begin(), kept);
    tail -= weight(*--kept);
  }
  return Candidates(kept, all.end());
}

struct TokenFilter {
  const SpeechOptions& options;
  ops::SamplingOrder order;
  const uint8_t* seen;
  int count;

  bool penalty_last() const {
    return order == ops::SamplingOrder::penalty_last;
  }

  // The tokens that filter_row keeps of x, except that it also removes tokens
  // which are too unlikely to be drawn. None where rounding decides, or where x
  // holds NaN or its largest number is infinite.
  std::optional<Candidates> likely_tokens(const float* x) const {
    // Four roundings of probabilities, unless they are denormal, move the limit
    // of min-p by less.
    constexpr double unsure = 1e-5;
    constexpr float least_min_p = 1e-30f;
    const float* y = scaled(x);
    float highest = highest_of(y, count);
    if (!std::isfinite(highest) ||
        (options.min_p > 0.0f && options.min_p < least_min_p)) {
      return std::nullopt;
    }
    double limit = min_p_limit(highest);
    float least = static_cast<float>(limit - unsure);
    auto kept = list_from(y, count, std::max(least, top_k_limit(y, highest)));
    bool sure = std::ranges::all_of(
        kept, [&](const auto& each) { return each.x >= limit + unsure; });
    if (!sure) {
      return std::nullopt;
    }
    if (is_greedy(options)) {
      return penalised_last(kept.first(1));
    }
    if (options.top_p >= 1.0f) {
      return penalised_last(kept);
    }
    auto most_likely = keep_top_p(kept, highest, options.top_p);
    return most_likely ? penalised_last(*most_likely) : most_likely;
  }

 private:
  // x after a first penalty and the temperature.
  const float* scaled(const float* x) const {
    float divisor = is_greedy(options) ? 1.0f : options.temperature;
    float* y = scratch<Scaled>(count);
    for (int i = 0; i < count; ++i) {
      y[i] = x[i] / divisor;
    }
    if (!penalty_last()) {
      for_seen(seen, count, [&](int i) {
        y[i] = penalised(x[i], options.repetition_penalty) / divisor;
      });
    }
    return y;
  }

  float top_k_limit(const float* y, float highest) const {
    if (is_greedy(options)) {
      return highest;
    }
    bool cuts = options.top_k > 0 && options.top_k < count;
    return cuts ? kth_largest(y, count, options.top_k) : kRemoved;
  }

  double min_p_limit(float highest) const {
    bool cuts = !is_greedy(options) && options.min_p > 0.0f;
    return cuts ? highest + std::log(double(options.min_p)) : kRemoved;
  }

  Candidates penalised_last(Candidates kept) const {
    for (auto& [x, token] : kept) {
      if (penalty_last() && seen[token]) {
        x = penalised(x, options.repetition_penalty);
      }
    }
    return kept;
  }
};

// draw_from(x) where all but `kept` were removed from x.
int draw_among(Candidates kept, DrawKey key, int count) {
  // The noise of 23 random bits is between -2.9 and 16.7, so that a token this
  // far below another is never drawn as long as sums are rounded to an eighth
  // at most.
  constexpr float noise_range = 20.0f, largest_exact = 1 << 20;
  float top = kRemoved;
  for (const auto& each : kept) {
    top = std::max(top, each.x);
  }
  float least = std::fabs(top) < largest_exact ? top - noise_range : kRemoved;
  int best = 0;
  float highest = kRemoved;
  for (auto [x, token] : kept) {
    if (x < least || x == kRemoved) {
      continue;
    }
    float score = gumbel_score(x, key, token, count);
    if (score > highest || (score == highest && token < best)) {
      highest = score;
      best = token;
    }
  }
  return best;
}

// Where the arrays of the op are.
enum InputIndex : int {
  kLogits,
  kSeenBefore,
  kLastToken,
  kMarksBefore,
  kSumsBefore,
  kWeights // those of the first head
};
enum OutputIndex : int { kToken, kSeen, kMarks, kSums, kReport };

// One step of a sampler.
struct TokenStep {
  ops::TokenRules rules;
  int position;

  void run(const Arrays& in, Arrays& out) const {
    const float* logits = in[kLogits].data<float>();
    int rows = in[kLogits].shape(0), count = in[kLogits].shape(1);
    float* x = scratch<Guided>(count);
    guide_rows(logits, rows, count, rules.options.cfg_weight, x);
    if (rules.analyser) {
      analyse(in, out, x, count);
    }
    if (position < rules.limits.first_stop) {
      remove_token(rules.stop_token, x, count);
    }
    const auto* seen_before = in[kSeenBefore].data<uint8_t>();
    int token = choose(x, seen_before, count);
    out[kToken].data<int>()[0] = token;
    auto* seen = out[kSeen].data<uint8_t>();
    int size = out[kSeen].size();
    if (forgets_seen()) {
      std::fill_n(seen, size, 0);
    } else {
      std::copy_n(seen_before, size, seen);
    }
    mark_token(token, seen, size);
  }

 private:
  // The start of speech counts as seen for the first token only.
  bool forgets_seen() const {
    return rules.order == ops::SamplingOrder::penalty_last && position == 0;
  }

  void analyse(const Arrays& in, Arrays& out, float* x, int count) const {
    int *marks = out[kMarks].data<int>(), *report = out[kReport].data<int>();
    float* sums = out[kSums].data<float>();
    std::copy_n(in[kMarksBefore].data<int>(), int(ops::kMarks), marks);
    std::copy_n(in[kSumsBefore].data<float>(), int(ops::kSums), sums);
    AlignmentView view{
        .weights = std::span(in).subspan(kWeights),
        .token = in[kLastToken].data<int>()[0],
        .stop_token = rules.stop_token,
        .limits = rules.limits};
    follow_step(view, marks, sums, x, count);
    report[0] = marks[ops::kTextPosition];
    report[1] = marks[ops::kStopForced];
  }

  int choose(float* x, const uint8_t* seen, int count) const {
    DrawKey key = draw_key(
        {rules.options.seed,
         DrawStage::speech_token,
         rules.sentence,
         static_cast<uint32_t>(position)});
    TokenFilter filter{rules.options, rules.order, seen, count};
    if (auto likely = filter.likely_tokens(x)) {
      return draw_among(*likely, key, count);
    }
    filter_row(x, count, seen, rules.options, rules.order);
    return draw_from(x, count, key);
  }
};

} // namespace

ops::Sampler choose_token(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    ops::Sampler sampler,
    mx::Stream s) {
  const auto& rules = sampler.rules;
  TokenStep step{rules, sampler.position};
  Arrays inputs{as_float(logits, s), dense(sampler.seen, s)};
  std::vector<Output> outputs{
      {{1}, mx::int32}, {sampler.seen.shape(), mx::uint8}};
  if (rules.analyser) {
    inputs.insert(
        inputs.end(),
        {as_ids(sampler.token, s),
         dense(sampler.alignment.marks, s),
         dense(sampler.alignment.sums, s)});
    for (const auto& head : weights) {
      inputs.push_back(as_float(head, s));
    }
    outputs.push_back({{ops::kMarks}, mx::int32});
    outputs.push_back({{ops::kSums}});
    outputs.push_back({{2}, mx::int32});
  }
  auto out = make_ops(
      "ChooseToken",
      std::move(outputs),
      std::move(inputs),
      [step](const Arrays& in, Arrays& out) { step.run(in, out); },
      s);
  sampler.token = out[kToken];
  sampler.seen = out[kSeen];
  if (rules.analyser) {
    sampler.alignment = {out[kMarks], out[kSums]};
    sampler.report = out[kReport];
  }
  ++sampler.position;
  return sampler;
}

} // namespace nightingale::cpu
