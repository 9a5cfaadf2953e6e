#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/rotary.h"

using namespace nightingale;
using namespace nightingale::testing;

// What is fused must be what its parts are, one after the other; the parts have
// twins of their own.

namespace {

constexpr float kEps = 1e-5f;
constexpr int kHeads = 2, kDepth = 64, kChannels = kHeads * kDepth;

struct Caches {
  mx::array keys;
  mx::array values;
};

Caches caches_of(int past, mx::Dtype dtype, mx::Stream s) {
  mx::Shape shape{2, kHeads, past + 40, kDepth};
  auto x = noise_array({2, past, kChannels}, 11);
  auto y = noise_array({2, past, kChannels}, 12);
  Caches caches{
      cpu::make_cache(shape, dtype, s), cpu::make_cache(shape, dtype, s)};
  if (past > 0) {
    caches.keys = cpu::write_heads(caches.keys, x, 0, s);
    caches.values = cpu::write_heads(caches.values, y, 0, s);
  }
  mx::eval(caches.keys, caches.values);
  return caches;
}

// The same by ops that are not fused.
ops::SelfAttention in_parts(
    const mx::array& qkv,
    const mx::array& frequencies,
    const Caches& caches,
    int past,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  auto parts = mx::split(qkv, 3, -1, s);
  auto q = cpu::rotary(parts[0], frequencies, past, s);
  auto k = cpu::rotary(parts[1], frequencies, past, s);
  auto keys = cpu::write_heads(caches.keys, k, past, s);
  auto values = cpu::write_heads(caches.values, parts[2], past, s);
  std::vector<mx::array> weights;
  for (int head : watch.heads) {
    weights.push_back(cpu::attention_weights(
        q, keys, past, head, watch.rows, watch.begin, watch.count, s));
  }
  auto out = cpu::cached_attention(q, keys, values, past, s);
  return {out, keys, values, weights};
}

} // namespace

TEST_CASE("norm_linear is a linear of the norm") {
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 16, 17, 90}) {
      CAPTURE(rows);
      auto x = noise_array({1, rows, 133}, 1), norm = noise_array({133}, 2);
      auto w = noise_array({70, 133}, 3, dtype);
      auto normed = cpu::rms_norm(x, norm, kEps, s);
      auto expected = cpu::linear(normed, w, {}, s);
      CHECK(same_bits(cpu::norm_linear(x, norm, kEps, w, s), expected));
      auto graph = reference::norm_linear(
          x, norm, kEps, mx::astype(w, mx::float32, s), graph_stream());
      CHECK(relative_error(graph, values(expected)) < graph_tolerance(1e-5));
    }
  }
}

TEST_CASE("norm_swiglu is a swiglu of the norm_linear") {
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 5, 16, 17, 90}) {
      for (int features : {35, 128}) {
        CAPTURE(rows);
        auto x = noise_array({1, rows, 64}, 1), norm = noise_array({64}, 2);
        auto w = noise_array({2 * features, 64}, 3, dtype);
        auto both = cpu::norm_linear(x, norm, kEps, w, s);
        auto expected = cpu::swiglu(both, s);
        CHECK(same_bits(cpu::norm_swiglu(x, norm, kEps, w, s), expected));
        auto graph = reference::norm_swiglu(
            x, norm, kEps, mx::astype(w, mx::float32, s), graph_stream());
        CHECK(relative_error(graph, values(expected)) < graph_tolerance(1e-5));
      }
    }
  }
}

TEST_CASE("self_attention is rotary, two writes and a cached attention") {
  auto s = cpu_stream();
  auto frequencies = ops::rotary_frequencies(kDepth, {});
  for (mx::Dtype dtype : kFloatTypes) {
    for (int past : {0, 1, 37}) {
      for (int length : {1, 2, 16, 17, 30}) {
        CAPTURE(past);
        CAPTURE(length);
        auto qkv = noise_array({2, length, 3 * kChannels}, 5);
        ops::AttentionWatch watch{{1, 0}, 1, 0, past + length};
        auto caches = caches_of(past, dtype, s);
        auto expected = in_parts(qkv, frequencies, caches, past, watch, s);
        mx::eval(expected.out, expected.weights[0], expected.weights[1]);
        auto fresh = caches_of(past, dtype, s);
        auto found = cpu::self_attention(
            qkv, frequencies, fresh.keys, fresh.values, past, watch, s);
        // Beyond 16 rows BLAS sees other blocks, and may round otherwise.
        double tolerance = length <= cpu::kDotRows ? 0.0 : 1e-6;
        CHECK(relative_error(found.out, values(expected.out)) <= tolerance);
        CHECK(same_bits(found.weights[0], expected.weights[0]));
        CHECK(same_bits(found.weights[1], expected.weights[1]));
        auto again = caches_of(past, mx::float32, s);
        auto graph = reference::self_attention(
            qkv,
            frequencies,
            again.keys,
            again.values,
            past,
            watch,
            graph_stream());
        double rounding = dtype == mx::float32 ? 1e-5
            : dtype == mx::float16             ? 2e-3
                                               : 2e-2;
        CHECK(
            relative_error(graph.out, values(expected.out)) <
            graph_tolerance(rounding));
        CHECK(
            relative_error(graph.weights[0], values(expected.weights[0])) <
            graph_tolerance(rounding));
      }
    }
  }
}

TEST_CASE("a forked cache begins every row with the prefix") {
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    auto prefix = noise_array({1, 3, 9, 8}, 1, dtype);
    Values source = values(prefix);
    auto check = [&](const mx::array& cache) {
      REQUIRE(cache.shape() == mx::Shape{2, 3, 20, 8});
      CHECK(cache.dtype() == dtype);
      Values found = values(cache);
      for (int i = 0; i < 2 * 3 * 7 * 8; ++i) {
        int d = i % 8, t = i / 8 % 7, head = i / 56 % 3, b = i / 168;
        REQUIRE(
            found[((b * 3 + head) * 20 + t) * 8 + d] ==
            source[(head * 9 + t) * 8 + d]);
      }
    };
    check(cpu::fork_cache(prefix, 7, 2, 20, s));
    check(reference::fork_cache(prefix, 7, 2, 20, graph_stream()));
  }
}
