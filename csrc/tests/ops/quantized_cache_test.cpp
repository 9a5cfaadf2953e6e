#include <doctest/doctest.h>

#include "attention_reference.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"
#include "nightingale/ops/quantized_cache.h"
#include "nightingale/ops/rotary.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kHeads = 2, kDepth = 64, kChannels = kHeads * kDepth;

struct Backend {
  std::string name;
  mx::Stream stream;
  decltype(&cpu::make_cache) make_cache;
  decltype(&cpu::write_heads) write_heads;
  decltype(&cpu::cached_attention) cached_attention;
  decltype(&cpu::attention_weights) attention_weights;
  decltype(&cpu::fork_cache) fork_cache;

  mx::array empty(int batch, int capacity, int bits) const {
    auto [shape, dtype] =
        ops::cache_shape({batch, kHeads, capacity, kDepth}, mx::float32, bits);
    return make_cache(shape, dtype, stream);
  }
  mx::array filled(const mx::array& x, int capacity, int bits) const {
    return write_heads(empty(x.shape(0), capacity, bits), x, 0, stream);
  }
};

const std::vector<Backend>& all_backends() {
  static const std::vector<Backend> both{
      {"cpu",
       cpu_stream(),
       cpu::make_cache,
       cpu::write_heads,
       cpu::cached_attention,
       cpu::attention_weights,
       cpu::fork_cache},
      {"graph",
       graph_stream(),
       reference::make_cache,
       reference::write_heads,
       reference::cached_attention,
       reference::attention_weights,
       reference::fork_cache}};
  return both;
}

template <typename F>
void for_each_backend(F body) {
  for (const auto& backend : all_backends()) {
    CAPTURE(backend.name);
    for (int bits : {8, 4}) {
      CAPTURE(bits);
      body(backend, bits);
    }
  }
}

// The first `length` positions of a cache: [B, length, heads * head_dim].
mx::array read_back(const mx::array& cache, int length, int bits) {
  auto s = cpu_stream();
  mx::Shape stop = cache.shape();
  stop[2] = length;
  auto rows = mx::slice(cache, {0, 0, 0, 0}, stop, s);
  auto heads = reference::decode_heads(rows, bits, mx::float32, s);
  return mx::reshape(
      mx::transpose(heads, {0, 2, 1, 3}, s), {cache.shape(0), length, -1}, s);
}

} // namespace

TEST_CASE("a quantized cache is 3.5 and 6 times smaller than float32") {
  auto bytes = [](int bits) {
    auto [shape, dtype] = ops::cache_shape({2, 16, 10, 64}, mx::float32, bits);
    return double(mx::zeros(shape, dtype, cpu_stream()).nbytes());
  };
  CHECK(bytes(0) / bytes(8) > 3.5);
  CHECK(bytes(0) / bytes(4) > 6.0);
}

TEST_CASE("other bits and sizes of heads cannot be cached quantized") {
  CHECK_THROWS_WITH_AS(
      ops::quantized_words(64, 3),
      "a KV cache takes 8 or 4 bits, not 3",
      Error);
  CHECK_THROWS_AS(ops::quantized_words(48, 8), Error);
  CHECK_THROWS_AS(ops::quantized_words(544, 8), Error);
  CHECK(ops::quantized_bits(mx::zeros({1, 1, 1, 18}, mx::uint32), 64) == 8);
  CHECK(ops::quantized_bits(mx::zeros({1, 1, 1, 10}, mx::uint32), 64) == 4);
  CHECK(ops::quantized_bits(mx::zeros({1, 1, 1, 64}, mx::float16), 64) == 0);
  CHECK_THROWS_AS(
      ops::quantized_bits(mx::zeros({1, 1, 1, 16}, mx::uint32), 64), Error);
  auto keys = mx::zeros({1, 1, 4, 18}, mx::uint32);
  auto values = mx::zeros({1, 1, 4, 10}, mx::uint32);
  CHECK_THROWS_AS(
      cpu::cached_attention(
          {mx::zeros({1, 1, 64}), 0}, {keys, values}, cpu_stream()),
      Error);
}

TEST_CASE("quantized rows are written in their places and nothing elsewhere") {
  for_each_backend([](const Backend& b, int bits) {
    auto x = noise_array({2, 3, kChannels}, 1);
    auto s = cpu_stream();
    mx::Shape shape{2, kHeads, 7, ops::quantized_words(kDepth, bits)};
    auto cache = mx::contiguous(mx::full(shape, mx::array(7u), s), false, s);
    mx::eval(cache);
    auto written = b.write_heads(cache, x, 2, b.stream);
    auto expected = cpu::write_heads(
        mx::contiguous(mx::full(shape, mx::array(7u), s), false, s), x, 2, s);
    mx::eval(written, expected);
    CHECK(mx::array_equal(written, expected, s).item<bool>());
    auto places = mx::slice(written, {0, 0, 5, 0}, {2, kHeads, 7, shape[3]}, s);
    CHECK(mx::all(mx::equal(places, mx::array(7u), s), s).item<bool>());
    double tolerance = bits == 8 ? 0.005 : 0.08;
    auto start = mx::slice(written, {0, 0, 2, 0}, {2, kHeads, 5, shape[3]}, s);
    CHECK(relative_error(read_back(start, 3, bits), values(x)) < tolerance);
  });
}

TEST_CASE(
    "attention over a quantized cache is that over its dequantized rows") {
  for_each_backend([](const Backend& b, int bits) {
    for (int past : {0, 1, 37}) {
      for (int length : {1, 2, 16, 17, 70}) {
        CAPTURE(past);
        CAPTURE(length);
        int total = past + length;
        auto q = noise_array({2, length, kChannels}, 1);
        auto k = noise_array({2, total, kChannels}, 2);
        auto v = noise_array({2, total, kChannels}, 3);
        auto keys = b.filled(k, total + 3, bits);
        auto values_ = b.filled(v, total + 3, bits);
        auto k_read = read_back(keys, total, bits);
        auto v_read = read_back(values_, total, bits);
        auto y = b.cached_attention({q, past}, {keys, values_}, b.stream);
        CHECK(
            relative_error(
                y, attention_reference(q, k_read, v_read, kHeads, true)) <
            graph_tolerance(1e-5));
        auto weights = b.attention_weights(
            {q, past}, keys, {{1}, 1, 0, total}, b.stream)[0];
        CHECK(
            relative_error(
                weights,
                attention_weights_reference(
                    q, k_read, kHeads, 0, 1, length - 1, total)) <
            graph_tolerance(1e-5));
      }
    }
  });
}

TEST_CASE("a vector of zeros, of huge values and of NaN in a cache") {
  for_each_backend([](const Backend& b, int bits) {
    auto s = cpu_stream();
    auto attended = [&](float value) {
      auto x = mx::full({1, 3, kChannels}, value, mx::float32, s);
      mx::eval(x);
      auto cache = b.filled(x, 4, bits);
      auto q = mx::zeros({1, 1, kChannels}, mx::float32, s);
      return values(b.cached_attention({q, 2}, {cache, cache}, b.stream));
    };
    CHECK(attended(0.0f) == Values(kChannels, 0.0));
    CHECK(attended(1e30f)[5] == doctest::Approx(1e30).epsilon(0.01));
    CHECK(std::isnan(attended(NAN)[5]));
  });
}

TEST_CASE(
    "attention of up to 16 rows over a quantized cache is batch-invariant") {
  auto s = cpu_stream();
  for (int bits : {8, 4}) {
    auto keys =
        all_backends()[0].filled(noise_array({2, 64, kChannels}, 2), 64, bits);
    auto values_ =
        all_backends()[0].filled(noise_array({2, 64, kChannels}, 3), 64, bits);
    for (int length = 2; length <= 16; ++length) {
      auto q = noise_array({2, length, kChannels}, 1);
      auto whole = cpu::cached_attention({q, 40}, {keys, values_}, s);
      for (int t = 0; t < length; ++t) {
        auto row = cpu::cached_attention(
            {rows_of(q, t, t + 1), 40 + t}, {keys, values_}, s);
        CHECK(same_bits(row, rows_of(whole, t, t + 1)));
      }
    }
  }
}

TEST_CASE(
    "self_attention over a quantized cache is its parts, and its reference") {
  auto s = cpu_stream();
  auto frequencies = ops::rotary_frequencies(kDepth, {});
  for (int bits : {8, 4}) {
    for (auto [past, length] :
         {std::pair(0, 1),
          std::pair(9, 1),
          std::pair(5, 16),
          std::pair(3, 30)}) {
      CAPTURE(past);
      CAPTURE(length);
      const Backend& b = all_backends()[0];
      auto before = [&](uint32_t seed) {
        return past == 0
            ? b.empty(2, 40, bits)
            : b.filled(noise_array({2, past, kChannels}, seed), 40, bits);
      };
      auto qkv = noise_array({2, length, 3 * kChannels}, 5);
      ops::AttentionWatch watch{{1}, 1, 0, past + length};
      auto with = [&] {
        return ops::AttentionInput{
            qkv, frequencies, {before(7), before(8)}, past, watch};
      };
      auto found = cpu::self_attention(with(), s);
      auto parts = mx::split(qkv, 3, -1, s);
      auto q = cpu::rotary(parts[0], frequencies, past, s);
      auto k = cpu::rotary(parts[1], frequencies, past, s);
      auto keys = cpu::write_heads(before(7), k, past, s);
      auto values_ = cpu::write_heads(before(8), parts[2], past, s);
      auto expected = cpu::cached_attention({q, past}, {keys, values_}, s);
      double tolerance = length <= cpu::kDotRows ? 0.0 : 1e-6;
      CHECK(relative_error(found.out, values(expected)) <= tolerance);
      auto graph = reference::self_attention(with(), graph_stream());
      // A key that the two rotate an ulp apart may be rounded to another
      // integer.
      CHECK(
          relative_error(graph.out, values(expected)) <
          (bits == 8 ? 0.01 : 0.1));
      CHECK(
          relative_error(graph.weights[0], values(found.weights[0])) <
          (bits == 8 ? 0.01 : 0.1));
    }
  }
}

TEST_CASE("a forked quantized cache begins every row with the prefix") {
  for_each_backend([](const Backend& b, int bits) {
    auto x = noise_array({1, 9, kChannels}, 1);
    auto prefix = b.filled(x, 9, bits);
    auto forked = b.fork_cache(prefix, {7, 2, 20}, b.stream);
    CHECK(forked.shape(2) == 20);
    auto expected = floats(read_back(prefix, 7, bits));
    auto found = floats(read_back(forked, 7, bits));
    auto twice = expected;
    twice.insert(twice.end(), expected.begin(), expected.end());
    CHECK(same_bits(found, twice));
  });
}
