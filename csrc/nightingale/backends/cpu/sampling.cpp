#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"

namespace nightingale::cpu {

namespace {

constexpr float kRemoved = -std::numeric_limits<float>::infinity();

void keep_most_likely(float* x, int count) {
  int best = std::max_element(x, x + count) - x;
  for (int i = 0; i < count; ++i) {
    if (i != best) {
      x[i] = kRemoved;
    }
  }
}

std::vector<float> softmax_of(const float* x, int count) {
  float top = *std::max_element(x, x + count);
  std::vector<float> p(count);
  double sum = 0.0;
  for (int i = 0; i < count; ++i) {
    p[i] = std::exp(x[i] - top);
    sum += p[i];
  }
  for (float& value : p) {
    value /= static_cast<float>(sum);
  }
  return p;
}

void penalise(const uint8_t* seen, int count, float penalty, float* x) {
  for (int i = 0; i < count; ++i) {
    x[i] = !seen[i] ? x[i] : x[i] < 0.0f ? x[i] * penalty : x[i] / penalty;
  }
}

// Removes tokens below the top_k-th largest.
void apply_top_k(float* x, int count, int top_k) {
  if (top_k == 0 || top_k >= count) {
    return;
  }
  std::vector<float> sorted(x, x + count);
  auto last = sorted.begin() + (top_k - 1);
  std::nth_element(sorted.begin(), last, sorted.end(), std::greater<>());
  for (int i = 0; i < count; ++i) {
    if (x[i] < *last) {
      x[i] = kRemoved;
    }
  }
}

// Removes tokens whose probability is below min_p times the largest.
void apply_min_p(float* x, int count, float min_p) {
  if (min_p <= 0.0f) {
    return;
  }
  auto p = softmax_of(x, count);
  float least = min_p * *std::max_element(p.begin(), p.end());
  for (int i = 0; i < count; ++i) {
    if (p[i] < least) {
      x[i] = kRemoved;
    }
  }
}

// Removes the least likely tokens whose probabilities sum to at most
// 1 - top_p.
void apply_top_p(float* x, int count, float top_p) {
  auto p = softmax_of(x, count);
  std::vector<int> kept;
  for (int i = 0; i < count; ++i) {
    if (p[i] > 0.0f) {
      kept.push_back(i);
    } else {
      x[i] = kRemoved;
    }
  }
  if (top_p >= 1.0f) {
    return;
  }
  std::stable_sort(
      kept.begin(), kept.end(), [&](int a, int b) { return x[a] < x[b]; });
  double tail = 0.0;
  for (size_t i = 0; i + 1 < kept.size(); ++i) {
    tail += p[kept[i]];
    if (tail > 1.0 - top_p) {
      return;
    }
    x[kept[i]] = kRemoved;
  }
}

} // namespace

mx::array guide(const mx::array& logits, float weight, mx::Stream s) {
  return make_op(
      "Guide",
      {mx::Shape{logits.shape(-1)}},
      {as_float(logits, s)},
      [weight](const Arrays& in, Arrays& out) {
        int count = out[0].size();
        const float* conditioned = in[0].data<float>();
        float* y = out[0].data<float>();
        if (in[0].shape(0) == 1) {
          std::copy(conditioned, conditioned + count, y);
          return;
        }
        const float* free = conditioned + count;
        for (int i = 0; i < count; ++i) {
          y[i] = conditioned[i] + weight * (conditioned[i] - free[i]);
        }
      },
      s);
}

mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    ops::SamplingOrder order,
    mx::Stream s) {
  bool penalty_last = order == ops::SamplingOrder::penalty_last;
  return make_op(
      "FilterLogits",
      {logits.shape()},
      {as_float(logits, s), dense(seen, s)},
      [options, penalty_last](const Arrays& in, Arrays& out) {
        int count = in[0].size();
        const uint8_t* seen = in[1].data<uint8_t>();
        float* y = out[0].data<float>();
        std::copy_n(in[0].data<float>(), count, y);
        if (!penalty_last) {
          penalise(seen, count, options.repetition_penalty, y);
        }
        if (options.temperature < ops::kArgmaxTemperature) {
          keep_most_likely(y, count);
          return;
        }
        for (int i = 0; i < count; ++i) {
          y[i] /= options.temperature;
        }
        apply_top_k(y, count, options.top_k);
        apply_min_p(y, count, options.min_p);
        // Without a cut, a last penalty still sees what is too rare to draw.
        if (!penalty_last || options.top_p < 1.0f) {
          apply_top_p(y, count, options.top_p);
        }
        if (penalty_last) {
          penalise(seen, count, options.repetition_penalty, y);
        }
      },
      s);
}

mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s) {
  return make_op(
      "DrawToken",
      {{1}, mx::int32},
      {as_float(logits, s)},
      [key](const Arrays& in, Arrays& out) {
        int count = in[0].size(), best = 0;
        const float* x = in[0].data<float>();
        float highest = -std::numeric_limits<float>::infinity();
        for (int i = 0; i < count; ++i) {
          if (x[i] == kRemoved) {
            continue;
          }
          float u = (random_word(key, i, count) >> 9) + 0.5f;
          float score = x[i] - std::log(-std::log(u * 0x1p-23f));
          if (score > highest) {
            highest = score;
            best = i;
          }
        }
        out[0].data<int>()[0] = best;
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
        if (token >= 0 && token < static_cast<int>(in[0].size())) {
          y[token] = kRemoved;
        }
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
        if (token >= 0 && token < static_cast<int>(out[0].size())) {
          out[0].data<uint8_t>()[token] = 1;
        }
      },
      s);
}

} // namespace nightingale::cpu
