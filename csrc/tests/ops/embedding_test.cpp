#include "nightingale/ops/embedding.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("embedding gives the rows of the table exactly as stored") {
  mx::array ids({4, 0, 6, 6, 2, 1}, {2, 3});
  for (mx::Dtype dtype : kFloatTypes) {
    for (int channels : {1, 7, 16, 133}) {
      auto table = noise_array({7, channels}, 1, dtype);
      Values stored = values(table), expected;
      for (int id : {4, 0, 6, 6, 2, 1}) {
        expected.insert(
            expected.end(),
            stored.begin() + id * channels,
            stored.begin() + (id + 1) * channels);
      }
      auto y = cpu::embedding(table, ids, cpu_stream());
      CHECK(y.shape() == mx::Shape{2, 3, channels});
      CHECK(y.dtype() == mx::float32);
      CHECK(values(y) == expected);
      auto graph = reference::embedding(table, ids, graph_stream());
      CHECK(graph.dtype() == dtype);
      CHECK(values(graph) == expected);
    }
  }
}

TEST_CASE("embedding of every layout of the table and the ids") {
  auto table = noise_array({9, 12}, 1);
  mx::array ids({8, 1, 5, 3, 0, 7}, {2, 3});
  for (auto [backend, embedding, s] :
       backend_ops(cpu::embedding, reference::embedding)) {
    CAPTURE(backend);
    check_views(table, [&](auto& v) { return embedding(v, ids, s); });
    // check_views puts other ids beside these; they must not be read.
    check_views(ids, [&](auto& v) { return embedding(table, v, s); });
  }
}

TEST_CASE("embedding reads row 0 for ids outside the table on the CPU") {
  auto table = noise_array({3, 5}, 1);
  Values stored = values(table);
  Values first(stored.begin(), stored.begin() + 5);
  for (int id : {-1, 3, 1 << 30, -(1 << 30)}) {
    auto y = cpu::embedding(table, mx::array({id}), cpu_stream());
    CHECK(values(y) == first);
  }
}
