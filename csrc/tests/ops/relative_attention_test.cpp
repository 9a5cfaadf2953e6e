#include <doctest/doctest.h>

#include "arrays.h"
#include "attention_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/attention.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

struct Inputs {
  mx::array q, k, v, positions, content_bias, position_bias;

  Inputs(int batch, int length, int channels)
      : q(noise_array({batch, length, channels}, 1)),
        k(noise_array({batch, length, channels}, 2)),
        v(noise_array({batch, length, channels}, 3)),
        positions(noise_array({2 * length - 1, channels}, 4)),
        content_bias(noise_array({channels}, 5)),
        position_bias(noise_array({channels}, 6)) {}

  template <typename Op>
  mx::array run(Op op, int heads, mx::Stream s) const {
    return op(q, k, v, positions, content_bias, position_bias, heads, s);
  }
};

Values relative_reference(const Inputs& in, int heads) {
  Rows q(in.q), k(in.k), v(in.v);
  int length = q.length, channels = q.channels, depth = channels / heads;
  Values p = values(in.positions), y;
  Values content = values(in.content_bias), by = values(in.position_bias);
  for (int b = 0; b < q.batch; ++b) {
    for (int i = 0; i < length; ++i) {
      for (int head = 0; head < heads; ++head) {
        Values weights(length);
        double sum = 0.0;
        for (int j = 0; j < length; ++j) {
          double score = 0.0;
          for (int d = 0; d < depth; ++d) {
            int c = head * depth + d;
            score += (q.at(b, i)[c] + content[c]) * k.at(b, j)[c];
            score += (q.at(b, i)[c] + by[c]) *
                p[(length - 1 - i + j) * channels + c];
          }
          weights[j] = std::exp(score / std::sqrt(double(depth)));
          sum += weights[j];
        }
        for (int d = 0; d < depth; ++d) {
          double out = 0.0;
          for (int j = 0; j < length; ++j) {
            out += weights[j] / sum * v.at(b, j)[head * depth + d];
          }
          y.push_back(out);
        }
      }
    }
  }
  return y;
}

} // namespace

TEST_CASE("relative attention scores content and distance") {
  for (int head_dim : {5, 64, 80}) {
    for (int length : {1, 2, 13, 14, 15, 33, 70, 100}) {
      CAPTURE(head_dim);
      CAPTURE(length);
      Inputs in(2, length, 2 * head_dim);
      Values expected = relative_reference(in, 2);
      auto y = in.run(cpu::relative_attention, 2, cpu_stream());
      CHECK(y.shape() == in.q.shape());
      CHECK(relative_error(y, expected) < 5e-6);
      y = in.run(reference::relative_attention, 2, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(5e-6));
    }
  }
}

TEST_CASE("relative attention of every layout of its inputs") {
  Inputs in(2, 20, 12);
  for (auto [form, attention, s] :
       forms(cpu::relative_attention, reference::relative_attention)) {
    CAPTURE(form);
    auto check = [&, attention = attention, s = s](mx::array Inputs::* input) {
      check_views(in.*input, [&](auto& view) {
        Inputs changed = in;
        changed.*input = view;
        return changed.run(attention, 3, s);
      });
    };
    for (auto input :
         {&Inputs::q,
          &Inputs::k,
          &Inputs::v,
          &Inputs::positions,
          &Inputs::content_bias,
          &Inputs::position_bias}) {
      check(input);
    }
  }
}
