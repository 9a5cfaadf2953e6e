#include <doctest/doctest.h>

#include "arrays.h"
#include "attention_reference.h"
#include "mlx/memory.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/rotary.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// The ops of one backend over one cache.
struct Backend {
  std::string name;
  mx::Stream stream;
  decltype(&cpu::write_heads) write_heads;
  decltype(&cpu::cached_attention) cached_attention;
  decltype(&cpu::attention_weights) attention_weights;

  mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype) const {
    auto make = write_heads == cpu::write_heads ? cpu::make_cache
                                                : reference::make_cache;
    return make(shape, dtype, stream);
  }
};

const std::vector<Backend>& all_backends() {
  static const std::vector<Backend> both{
      {"cpu",
       cpu_stream(),
       cpu::write_heads,
       cpu::cached_attention,
       cpu::attention_weights},
      {"graph",
       graph_stream(),
       reference::write_heads,
       reference::cached_attention,
       reference::attention_weights}};
  return both;
}

mx::array rounded(const mx::array& x, mx::Dtype dtype) {
  auto s = cpu_stream();
  return mx::astype(mx::astype(x, dtype, s), mx::float32, s);
}

constexpr int kHeads = 2, kDepth = 64, kChannels = kHeads * kDepth;

ops::LayerCache caches_of(int past, mx::Dtype dtype, mx::Stream s) {
  mx::Shape shape{2, kHeads, past + 40, kDepth};
  auto x = noise_array({2, past, kChannels}, 11);
  auto y = noise_array({2, past, kChannels}, 12);
  ops::LayerCache caches{
      cpu::make_cache(shape, dtype, s), cpu::make_cache(shape, dtype, s)};
  if (past > 0) {
    caches.keys = cpu::write_heads(caches.keys, x, 0, s);
    caches.values = cpu::write_heads(caches.values, y, 0, s);
  }
  mx::eval(caches.keys, caches.values);
  return caches;
}

// The same by ops that are not fused.
ops::SelfAttention in_parts(const ops::AttentionInput& in, mx::Stream s) {
  auto parts = mx::split(in.qkv, 3, -1, s);
  auto q = cpu::rotary(parts[0], *in.frequencies, in.past, s);
  auto k = cpu::rotary(parts[1], *in.frequencies, in.past, s);
  ops::LayerCache cache{
      cpu::write_heads(in.cache.keys, k, in.past, s),
      cpu::write_heads(in.cache.values, parts[2], in.past, s)};
  ops::CachedQueries queries{q, in.past};
  auto weights = cpu::attention_weights(queries, cache.keys, in.watch, s);
  return {cpu::cached_attention(queries, cache, s), cache, weights};
}

// A whole sequence of queries, keys and values: [B, T, heads * head_dim].
struct Sequence {
  int batch, length, heads, head_dim;
  mx::array q, k, v;

  Sequence(int batch, int length, int heads, int head_dim)
      : batch(batch),
        length(length),
        heads(heads),
        head_dim(head_dim),
        q(noise_array({batch, length, heads * head_dim}, 1)),
        k(noise_array({batch, length, heads * head_dim}, 2)),
        v(noise_array({batch, length, heads * head_dim}, 3)) {}

  // Feeds the rows `sizes` at a time; what the chunks gave, put together.
  mx::array attend(
      const Backend& b,
      mx::Dtype dtype,
      const std::vector<int>& sizes,
      int capacity) const {
    auto s = b.stream;
    mx::Shape shape{batch, heads, capacity, head_dim};
    auto keys = b.make_cache(shape, dtype), values = b.make_cache(shape, dtype);
    std::vector<mx::array> chunks;
    int past = 0;
    for (int size : sizes) {
      keys = b.write_heads(keys, rows_of(k, past, past + size), past, s);
      values = b.write_heads(values, rows_of(v, past, past + size), past, s);
      auto queries = rows_of(q, past, past + size);
      chunks.push_back(b.cached_attention({queries, past}, {keys, values}, s));
      past += size;
    }
    return mx::concatenate(chunks, 1, s);
  }

  Values expected(mx::Dtype dtype) const {
    return attention_reference(
        q, rounded(k, dtype), rounded(v, dtype), heads, true);
  }
};

} // namespace

TEST_CASE("cached attention is causal attention, whatever came before") {
  for (const auto& backend : all_backends()) {
    for (mx::Dtype dtype : kFloatTypes) {
      for (int past : {0, 1, 37}) {
        for (int length : {1, 2, 16, 17, 70}) {
          CAPTURE(backend.name);
          CAPTURE(past);
          CAPTURE(length);
          Sequence x(2, past + length, 2, 64);
          std::vector<int> sizes{past, length};
          sizes.erase(sizes.begin(), sizes.begin() + (past == 0));
          auto y = x.attend(backend, dtype, sizes, past + length + 3);
          CHECK(relative_error(y, x.expected(dtype)) < graph_tolerance(2e-6));
        }
      }
    }
  }
}

TEST_CASE("cached attention of head sizes that no vector divides") {
  for (const auto& backend : all_backends()) {
    for (mx::Dtype dtype : kFloatTypes) {
      for (int head_dim : {1, 7, 33, 48, 80}) {
        CAPTURE(backend.name);
        CAPTURE(head_dim);
        Sequence x(1, 25, 3, head_dim);
        auto y = x.attend(backend, dtype, {20, 5}, 25);
        CHECK(relative_error(y, x.expected(dtype)) < graph_tolerance(2e-6));
      }
    }
  }
}

TEST_CASE("cached attention in chunks equals all at once") {
  for (const auto& backend : all_backends()) {
    for (mx::Dtype dtype : kFloatTypes) {
      CAPTURE(backend.name);
      Sequence x(2, 40, 2, 64);
      Values whole = values(x.attend(backend, dtype, {40}, 48));
      for (int size : {1, 3, 8, 20}) {
        CAPTURE(size);
        std::vector<int> sizes(40 / size, size);
        sizes.push_back(40 % size);
        sizes.resize(sizes.size() - (sizes.back() == 0));
        auto y = x.attend(backend, dtype, sizes, 48);
        CHECK(relative_error(y, whole) < graph_tolerance(2e-6));
      }
    }
  }
}

TEST_CASE("attention weights are the softmax that one head gives") {
  constexpr int batch = 2, heads = 3, head_dim = 64, head = 1;
  for (const auto& backend : all_backends()) {
    auto s = backend.stream;
    for (mx::Dtype dtype : kFloatTypes) {
      for (auto [past, length, rows] :
           {std::tuple(0, 30, 2), std::tuple(37, 1, 1), std::tuple(4, 9, 9)}) {
        CAPTURE(backend.name);
        CAPTURE(past);
        Sequence x(batch, past + length, heads, head_dim);
        auto keys =
            backend.make_cache({batch, heads, past + 40, head_dim}, dtype);
        keys = backend.write_heads(keys, x.k, 0, s);
        int begin = 3, count = past + length - begin;
        auto weights = backend.attention_weights(
            {rows_of(x.q, past, past + length), past},
            keys,
            {{head}, rows, begin, count},
            s)[0];
        CHECK(weights.shape() == mx::Shape{rows, count});
        Values expected;
        for (int row = past + length - rows; row < past + length; ++row) {
          Values p = attention_weights_reference(
              x.q, rounded(x.k, dtype), heads, 0, head, row, row + 1);
          p.resize(past + length);
          expected.insert(expected.end(), p.begin() + begin, p.end());
        }
        CHECK(relative_error(weights, expected) < graph_tolerance(2e-6));
      }
    }
  }
}

TEST_CASE("attention weights are 0 for positions that are not there yet") {
  for (const auto& backend : all_backends()) {
    CAPTURE(backend.name);
    Sequence x(1, 4, 1, 8);
    auto keys = backend.make_cache({1, 1, 10, 8}, mx::float32);
    keys = backend.write_heads(keys, x.k, 0, backend.stream);
    auto weights = values(backend.attention_weights(
        {x.q, 0}, keys, {{0}, 2, 0, 6}, backend.stream)[0]);
    REQUIRE(weights.size() == 12);
    CHECK(weights[2] > 0.0);
    CHECK(weights[3] == 0.0);
    CHECK(weights[9] > 0.0);
    CHECK(weights[10] == 0.0);
    CHECK(weights[11] == 0.0);
  }
}

TEST_CASE("write_heads puts heads in their places and nothing elsewhere") {
  for (const auto& backend : all_backends()) {
    for (mx::Dtype dtype : kFloatTypes) {
      CAPTURE(backend.name);
      auto s = backend.stream;
      auto x = noise_array({2, 3, 2 * 5}, 1);
      auto cache = mx::full({2, 2, 7, 5}, 9.0f, dtype, s);
      mx::eval(cache);
      auto filled = values(backend.write_heads(cache, x, 2, s));
      Values rows = values(rounded(x, dtype));
      for (int i = 0; i < 2 * 2 * 7 * 5; ++i) {
        int d = i % 5, t = i / 5 % 7, head = i / 35 % 2, b = i / 70;
        bool written = t >= 2 && t < 5;
        double expected =
            written ? rows[((b * 3 + t - 2) * 2 + head) * 5 + d] : 9.0;
        REQUIRE(filled[i] == expected);
      }
    }
  }
}

TEST_CASE("cached attention and its caches take every layout of their rows") {
  for (const auto& b : all_backends()) {
    CAPTURE(b.name);
    auto s = b.stream;
    Sequence x(2, 3, 2, 8);
    auto keys =
        b.write_heads(b.make_cache({2, 2, 6, 8}, mx::float32), x.k, 0, s);
    mx::eval(keys);
    check_views(x.k, [&](auto& rows) {
      auto cache = mx::zeros({2, 2, 6, 8}, mx::float32, s);
      return b.write_heads(mx::contiguous(cache, false, s), rows, 1, s);
    });
    check_views(x.q, [&](auto& rows) {
      return b.cached_attention({rows, 0}, {keys, keys}, s);
    });
    check_views(x.q, [&](auto& rows) {
      return b.attention_weights({rows, 0}, keys, {{1}, 2, 0, 3}, s)[0];
    });
  }
}

TEST_CASE("cached attention reads keys and values of every layout") {
  for (const auto& b : all_backends()) {
    CAPTURE(b.name);
    auto s = b.stream;
    auto q = noise_array({2, 3, 16}, 1);
    auto keys = noise_array({2, 2, 5, 8}, 2),
         values = noise_array({2, 2, 5, 8}, 3);
    check_views(keys, [&](auto& v) {
      return b.cached_attention({q, 2}, {v, values}, s);
    });
    check_views(values, [&](auto& v) {
      return b.cached_attention({q, 2}, {keys, v}, s);
    });
    check_views(keys, [&](auto& v) {
      return b.attention_weights({q, 2}, v, {{1}, 2, 0, 5}, s)[0];
    });
  }
}

TEST_CASE("write_heads into a cache that is a view keeps the rest of it") {
  for (const auto& b : all_backends()) {
    CAPTURE(b.name);
    auto s = b.stream;
    auto cache = noise_array({2, 2, 5, 8}, 1);
    auto x = noise_array({2, 3, 16}, 2);
    Values expected = values(reference::write_heads(cache, x, 1, s));
    for (const auto& view : views_of(cache)) {
      CAPTURE(view.name);
      CHECK(relative_error(b.write_heads(view.array, x, 1, s), expected) == 0);
    }
  }
}

TEST_CASE("write_heads takes the parts of a wider result") {
  auto s = cpu_stream();
  for (int axis : {1, 2}) {
    auto wide = cpu::leaky_relu(noise_array({2, 6, 48}, 1), 0.5f, s);
    for (const auto& part : mx::split(wide, 3, axis, s)) {
      auto cache =
          cpu::make_cache({2, 2, 6, part.shape(2) / 2}, mx::float32, s);
      cache =
          cpu::write_heads(cache, mx::zeros({2, 6, part.shape(2)}, s), 0, s);
      Values written = values(cpu::write_heads(cache, part, 0, s));
      CHECK(written == values(reference::write_heads(cache, part, 0, s)));
    }
  }
}

TEST_CASE("write_heads takes half rows") {
  auto s = cpu_stream();
  auto x = noise_array({1, 3, 16}, 1, mx::float16);
  auto cache = mx::zeros({1, 2, 4, 8}, mx::float32, s);
  Values expected = values(reference::write_heads(cache, x, 0, s));
  CHECK(relative_error(cpu::write_heads(cache, x, 0, s), expected) == 0);
}

TEST_CASE("an older cache still reads its own positions after an append") {
  auto s = cpu_stream();
  Sequence x(2, 12, 2, 64);
  mx::Shape shape{2, 2, 16, 64};
  auto keys = cpu::make_cache(shape, mx::float16, s);
  auto values_ = cpu::make_cache(shape, mx::float16, s);
  auto old_keys = cpu::write_heads(keys, rows_of(x.k, 0, 8), 0, s);
  auto old_values = cpu::write_heads(values_, rows_of(x.v, 0, 8), 0, s);
  auto last = rows_of(x.q, 7, 8);
  auto before = cpu::cached_attention({last, 7}, {old_keys, old_values}, s);
  mx::eval(before);

  auto new_keys = cpu::write_heads(old_keys, rows_of(x.k, 8, 12), 8, s);
  auto new_values = cpu::write_heads(old_values, rows_of(x.v, 8, 12), 8, s);
  mx::eval(new_keys, new_values);
  CHECK(new_keys.data<void>() == old_keys.data<void>());
  auto after = cpu::cached_attention({last, 7}, {old_keys, old_values}, s);
  CHECK(same_bits(after, before));

  // Rewinding: other rows may be written over the end of the old ones.
  auto other = cpu::write_heads(new_keys, rows_of(x.q, 8, 12), 8, s);
  mx::eval(other);
  after = cpu::cached_attention({last, 7}, {old_keys, old_values}, s);
  CHECK(same_bits(after, before));
}

TEST_CASE("decoding steps leave MLX's memory as it was") {
  auto s = cpu_stream();
  mx::clear_cache(); // else a larger buffer of an earlier case may be counted
  Sequence x(2, 210, 2, 64);
  mx::Shape shape{2, 2, 210, 64};
  auto keys = cpu::make_cache(shape, mx::float32, s);
  auto values_ = cpu::make_cache(shape, mx::float32, s);
  auto step = [&](int t) {
    auto k = rows_of(x.k, t, t + 1), v = rows_of(x.v, t, t + 1);
    keys = cpu::write_heads(keys, k, t, s);
    values_ = cpu::write_heads(values_, v, t, s);
    auto q = rows_of(x.q, t, t + 1);
    mx::eval(cpu::cached_attention({q, t}, {keys, values_}, s));
    mx::synchronize(s);
  };
  for (int t = 0; t < 10; ++t) {
    step(t);
  }
  size_t active = mx::get_active_memory();
  mx::reset_peak_memory();
  for (int t = 10; t < 210; ++t) {
    step(t);
  }
  CHECK(mx::get_active_memory() == active);
  // Beside what lives, a step holds its result and copies of its three rows.
  size_t row = 2 * 128 * sizeof(float);
  CHECK(mx::get_peak_memory() <= active + 4 * row);
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
        auto with = [&](mx::Dtype cached) {
          return ops::AttentionInput{
              qkv, frequencies, caches_of(past, cached, s), past, watch};
        };
        auto expected = in_parts(with(dtype), s);
        mx::eval(expected.out, expected.weights[0], expected.weights[1]);
        auto found = cpu::self_attention(with(dtype), s);
        // Beyond 16 rows BLAS sees other blocks, and may round otherwise.
        double tolerance = length <= cpu::kDotRows ? 0.0 : 1e-6;
        CHECK(relative_error(found.out, values(expected.out)) <= tolerance);
        CHECK(same_bits(found.weights[0], expected.weights[0]));
        CHECK(same_bits(found.weights[1], expected.weights[1]));
        auto graph =
            reference::self_attention(with(mx::float32), graph_stream());
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
    check(cpu::fork_cache(prefix, {7, 2, 20}, s));
    check(reference::fork_cache(prefix, {7, 2, 20}, graph_stream()));
  }
}
