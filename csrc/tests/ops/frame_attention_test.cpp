#include <doctest/doctest.h>

#include "arrays.h"
#include "attention_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

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
    return op({q, k, v, heads}, {positions, content_bias, position_bias}, s);
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

TEST_CASE("full attention lets every query see every key") {
  for (int head_dim : {5, 48, 64, 256}) {
    for (auto [rows, keys] :
         {std::pair(1, 1),
          std::pair(3, 40),
          std::pair(16, 5),
          std::pair(17, 33),
          std::pair(70, 70),
          std::pair(31, 200)}) {
      CAPTURE(head_dim);
      CAPTURE(rows);
      CAPTURE(keys);
      constexpr int heads = 2;
      auto q = noise_array({2, rows, heads * head_dim}, 1);
      auto k = noise_array({2, keys, heads * head_dim}, 2);
      auto v = noise_array({2, keys, heads * head_dim}, 3);
      Values expected = attention_reference(q, k, v, heads, false);
      auto y = cpu::full_attention({q, k, v, heads}, cpu_stream());
      CHECK(y.shape() == q.shape());
      CHECK(relative_error(y, expected) < 2e-6);
      y = reference::full_attention({q, k, v, heads}, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(2e-6));
    }
  }
}

TEST_CASE("full attention with scores far apart takes the best key alone") {
  auto q = array_of({100.0f, 0.0f}, {1, 1, 2});
  auto k = array_of({-50.0f, 1.0f, 60.0f, 2.0f, 59.0f, 3.0f}, {1, 3, 2});
  auto v = array_of({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {1, 3, 2});
  auto y = floats(cpu::full_attention({q, k, v, 1}, cpu_stream()));
  CHECK(y == std::vector<float>{3.0f, 4.0f});
}

TEST_CASE("full attention reads the parts of one array in place") {
  auto s = cpu_stream();
  auto qkv = noise_array({2, 50, 3 * 128}, 1);
  auto parts = mx::split(qkv, 3, -1, s);
  std::vector<mx::array> copies;
  for (const auto& part : parts) {
    copies.push_back(mx::contiguous(part, false, s));
  }
  auto expected = cpu::full_attention({copies[0], copies[1], copies[2], 2}, s);
  // Parts still to be computed, and computed ones.
  auto y = cpu::full_attention({parts[0], parts[1], parts[2], 2}, s);
  CHECK(y.inputs()[0].id() == parts[0].id());
  CHECK(same_bits(y, expected));
  mx::eval(parts);
  y = cpu::full_attention({parts[0], parts[1], parts[2], 2}, s);
  CHECK(y.inputs()[2].id() == parts[2].id());
  CHECK(same_bits(y, expected));
}

TEST_CASE("full attention of every layout of its inputs") {
  auto q = noise_array({2, 3, 12}, 1);
  auto k = noise_array({2, 5, 12}, 2), v = noise_array({2, 5, 12}, 3);
  for (auto [backend, attention, s] :
       backend_ops(cpu::full_attention, reference::full_attention)) {
    CAPTURE(backend);
    check_views(q, [&](auto& view) { return attention({view, k, v, 3}, s); });
    check_views(k, [&](auto& view) { return attention({q, view, v, 3}, s); });
    check_views(v, [&](auto& view) { return attention({q, k, view, 3}, s); });
  }
}

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
  for (auto [backend, attention, s] :
       backend_ops(cpu::relative_attention, reference::relative_attention)) {
    CAPTURE(backend);
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
