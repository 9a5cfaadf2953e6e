#include "nightingale/backends/cpu/sampling.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"

namespace nightingale::cpu {

namespace {

struct Probabilities;
struct TokensByLogit;
struct EqualBits;

void keep_most_likely(float* x, int count) {
  int best = std::max_element(x, x + count) - x;
  for (int i = 0; i < count; ++i) {
    if (i != best) {
      x[i] = kRemoved;
    }
  }
}

// They last until the next call.
const float* softmax_of(const float* x, int count) {
  float top = *std::max_element(x, x + count);
  float* p = scratch<Probabilities>(count);
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    p[i] = std::exp(x[i] - top);
    sum += p[i];
  }
  for (int i = 0; i < count; ++i) {
    p[i] /= static_cast<float>(sum);
  }
  return p;
}

void penalise(const uint8_t* seen, int count, float penalty, float* x) {
  for_seen(seen, count, [&](int i) { x[i] = penalised(x[i], penalty); });
}

// Removes tokens below the top_k-th largest.
void apply_top_k(float* x, int count, int top_k) {
  if (top_k == 0 || top_k >= count) {
    return;
  }
  float least = kth_largest(x, count, top_k);
  for (int i = 0; i < count; ++i) {
    if (x[i] < least) {
      x[i] = kRemoved;
    }
  }
}

// Removes tokens whose probability is below min_p times the largest.
void apply_min_p(float* x, int count, float min_p) {
  if (min_p <= 0.0f) {
    return;
  }
  const float* p = softmax_of(x, count);
  float least = min_p * *std::max_element(p, p + count);
  for (int i = 0; i < count; ++i) {
    if (p[i] < least) {
      x[i] = kRemoved;
    }
  }
}

// Removes the least likely tokens whose probabilities sum to at most
// 1 - top_p.
void apply_top_p(float* x, int count, float top_p) {
  const float* p = softmax_of(x, count);
  int *kept = scratch<TokensByLogit, int>(count), *end = kept;
  for (int i = 0; i < count; ++i) {
    if (p[i] > 0.0f) {
      *end++ = i;
    } else {
      x[i] = kRemoved;
    }
  }
  if (top_p >= 1.0f) {
    return;
  }
  std::stable_sort(kept, end, [&](int a, int b) { return x[a] < x[b]; });
  double tail = 0.0;
  for (; end - kept > 1; ++kept) {
    tail += p[*kept];
    if (tail > 1.0 - top_p) {
      return;
    }
    x[*kept] = kRemoved;
  }
}

// In the order of the numbers, with NaN at both ends.
uint32_t sortable_bits(float x) {
  auto bits = std::bit_cast<uint32_t>(x);
  return bits & 0x80000000 ? ~bits : bits | 0x80000000;
}

float from_sortable_bits(uint32_t bits) {
  return std::bit_cast<float>(bits & 0x80000000 ? bits & 0x7fffffff : ~bits);
}

} // namespace

// Logits are spread over many values of their upper bits, so that few of them
// are left to be selected from.
float kth_largest(const float* x, int count, int k) {
  constexpr int shift = 20;
  std::array<int, 1 << (32 - shift)> counts{};
  for (int i = 0; i < count; ++i) {
    ++counts[sortable_bits(x[i]) >> shift];
  }
  uint32_t upper = counts.size() - 1;
  for (; counts[upper] < k; --upper) {
    k -= counts[upper];
  }
  auto* bits = scratch<EqualBits, uint32_t>(count);
  auto* end = bits;
  for (int i = 0; i < count; ++i) {
    *end = sortable_bits(x[i]);
    end += *end >> shift == upper;
  }
  std::nth_element(bits, bits + k - 1, end, std::greater<>());
  return from_sortable_bits(bits[k - 1]);
}

void guide_rows(
    const float* logits,
    int rows,
    int count,
    float weight,
    float* y) {
  if (rows == 1) {
    std::copy_n(logits, count, y);
    return;
  }
  const float* free = logits + count;
  for (int i = 0; i < count; ++i) {
    y[i] = logits[i] + weight * (logits[i] - free[i]);
  }
}

void remove_token(int token, float* x, int count) {
  if (token >= 0 && token < count) {
    x[token] = kRemoved;
  }
}

void filter_row(
    float* x,
    int count,
    const uint8_t* seen,
    const SpeechOptions& options,
    ops::SamplingOrder order) {
  bool penalty_last = order == ops::SamplingOrder::penalty_last;
  if (!penalty_last) {
    penalise(seen, count, options.repetition_penalty, x);
  }
  if (is_greedy(options)) {
    keep_most_likely(x, count);
    return;
  }
  for (int i = 0; i < count; ++i) {
    x[i] /= options.temperature;
  }
  apply_top_k(x, count, options.top_k);
  apply_min_p(x, count, options.min_p);
  // Without a cut, a last penalty still sees what is too rare to draw.
  if (!penalty_last || options.top_p < 1.0f) {
    apply_top_p(x, count, options.top_p);
  }
  if (penalty_last) {
    penalise(seen, count, options.repetition_penalty, x);
  }
}

int draw_from(const float* x, int count, DrawKey key) {
  int best = 0;
  float highest = kRemoved;
  for (int i = 0; i < count; ++i) {
    if (x[i] == kRemoved) {
      continue;
    }
    float score = gumbel_score(x[i], key, i, count);
    if (score > highest) {
      highest = score;
      best = i;
    }
  }
  return best;
}

void mark_token(int token, uint8_t* seen, int count) {
  if (token >= 0 && token < count) {
    seen[token] = 1;
  }
}

mx::array guide(const mx::array& logits, float weight, mx::Stream s) {
  return make_op(
      "Guide",
      {mx::Shape{logits.shape(-1)}},
      {as_float(logits, s)},
      [weight](const Arrays& in, Arrays& out) {
        const float* logits = in[0].data<float>();
        int rows = in[0].shape(0), count = in[0].shape(1);
        guide_rows(logits, rows, count, weight, out[0].data<float>());
      },
      s);
}

mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    ops::SamplingOrder order,
    mx::Stream s) {
  return make_op(
      "FilterLogits",
      {logits.shape()},
      {as_float(logits, s), dense(seen, s)},
      [options, order](const Arrays& in, Arrays& out) {
        int count = in[0].size();
        float* y = out[0].data<float>();
        std::copy_n(in[0].data<float>(), count, y);
        filter_row(y, count, in[1].data<uint8_t>(), options, order);
      },
      s);
}

mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s) {
  return make_op(
      "DrawToken",
      {{1}, mx::int32},
      {as_float(logits, s)},
      [key](const Arrays& in, Arrays& out) {
        const float* x = in[0].data<float>();
        out[0].data<int>()[0] = draw_from(x, in[0].size(), key);
      },
      s);
}

mx::array forbid_token(const mx::array& logits, int token, mx::Stream s) {
  return make_op(
      "ForbidToken",
      {logits.shape()},
      {as_float(logits, s)},
      [token](const Arrays& in, Arrays& out) {
        float* y = out[0].data<float>();
        std::copy_n(in[0].data<float>(), in[0].size(), y);
        remove_token(token, y, in[0].size());
      },
      s);
}

mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s) {
  return make_op(
      "MarkSeen",
      {seen.shape(), mx::uint8, 0},
      {dense(seen, s), as_ids(token, s)},
      [](const Arrays& in, Arrays& out) {
        int token = in[1].data<int>()[0];
        mark_token(token, out[0].data<uint8_t>(), out[0].size());
      },
      s);
}

} // namespace nightingale::cpu
