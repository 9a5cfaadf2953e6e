#include <doctest/doctest.h>

#include "arrays.h"
#include "attention_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/attention.h"

using namespace nightingale;
using namespace nightingale::testing;

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
      auto y = cpu::full_attention(q, k, v, heads, cpu_stream());
      CHECK(y.shape() == q.shape());
      CHECK(relative_error(y, expected) < 2e-6);
      y = reference::full_attention(q, k, v, heads, graph_stream());
      CHECK(relative_error(y, expected) < graph_tolerance(2e-6));
    }
  }
}

TEST_CASE("full attention with scores far apart takes the best key alone") {
  auto q = array_of({100.0f, 0.0f}, {1, 1, 2});
  auto k = array_of({-50.0f, 1.0f, 60.0f, 2.0f, 59.0f, 3.0f}, {1, 3, 2});
  auto v = array_of({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {1, 3, 2});
  auto y = floats(cpu::full_attention(q, k, v, 1, cpu_stream()));
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
  auto expected = cpu::full_attention(copies[0], copies[1], copies[2], 2, s);
  // Parts still to be computed, and computed ones.
  auto y = cpu::full_attention(parts[0], parts[1], parts[2], 2, s);
  CHECK(y.inputs()[0].id() == parts[0].id());
  CHECK(same_bits(y, expected));
  mx::eval(parts);
  y = cpu::full_attention(parts[0], parts[1], parts[2], 2, s);
  CHECK(y.inputs()[2].id() == parts[2].id());
  CHECK(same_bits(y, expected));
}

TEST_CASE("full attention of every layout of its inputs") {
  auto q = noise_array({2, 3, 12}, 1);
  auto k = noise_array({2, 5, 12}, 2), v = noise_array({2, 5, 12}, 3);
  for (auto [form, attention, s] :
       forms(cpu::full_attention, reference::full_attention)) {
    CAPTURE(form);
    check_views(q, [&](auto& view) { return attention(view, k, v, 3, s); });
    check_views(k, [&](auto& view) { return attention(q, view, v, 3, s); });
    check_views(v, [&](auto& view) { return attention(q, k, view, 3, s); });
  }
}
