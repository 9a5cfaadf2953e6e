#pragma once

#include "arrays.h"

namespace nightingale::testing {

// The rows of [B, T, C].
struct Rows {
  std::vector<float> numbers;
  int batch, length, channels;

  Rows(const mx::array& x)
      : numbers(floats(x)),
        batch(x.shape(0)),
        length(x.shape(1)),
        channels(x.shape(2)) {}

  const float* at(int b, int t) const {
    return numbers.data() + (size_t(b) * length + t) * channels;
  }
};

// The weights that query `row` of one head gives to the first `visible` keys.
inline Values attention_weights_reference(
    const Rows& q,
    const Rows& k,
    int heads,
    int b,
    int head,
    int row,
    int visible) {
  int depth = q.channels / heads;
  const float* query = q.at(b, row) + head * depth;
  Values p(visible);
  double top = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (int t = 0; t < visible; ++t) {
    const float* key = k.at(b, t) + head * depth;
    for (int d = 0; d < depth; ++d) {
      p[t] += double(query[d]) * key[d] / std::sqrt(double(depth));
    }
    top = std::max(top, p[t]);
  }
  for (double& x : p) {
    x = std::exp(x - top);
    sum += x;
  }
  for (double& x : p) {
    x /= sum;
  }
  return p;
}

// Where causal, query row t of T sees keys [0, S - T + t].
inline Values attention_reference(
    const Rows& q,
    const Rows& k,
    const Rows& v,
    int heads,
    bool causal) {
  int depth = q.channels / heads;
  Values y(q.numbers.size());
  double* out = y.data();
  for (int b = 0; b < q.batch; ++b) {
    for (int row = 0; row < q.length; ++row) {
      for (int head = 0; head < heads; ++head) {
        int visible = causal ? k.length - q.length + row + 1 : k.length;
        Values p =
            attention_weights_reference(q, k, heads, b, head, row, visible);
        for (int d = 0; d < depth; ++d, ++out) {
          for (int t = 0; t < visible; ++t) {
            *out += p[t] * v.at(b, t)[head * depth + d];
          }
        }
      }
    }
  }
  return y;
}

} // namespace nightingale::testing
