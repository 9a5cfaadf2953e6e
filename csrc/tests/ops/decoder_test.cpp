#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/error.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/quantized_cache.h"
#include "nightingale/ops/rotary.h"

using namespace nightingale;
using namespace nightingale::testing;

// Layers that run as one op must be what their parts are, one after the other;
// the parts have references of their own.

namespace {

constexpr float kEps = 1e-5f;
constexpr int kHeads = 2, kHidden = kHeads * 64, kFfn = 192, kLayers = 3;
constexpr int kCapacity = 60;

enum class Kind { llama, gpt2 };

ops::DecoderLayer layer_of(Kind kind, int seed, int bits, mx::Stream s) {
  auto matrix = [&](int rows, int columns) {
    auto w =
        mx::multiply(noise_array({rows, columns}, ++seed), mx::array(0.1f), s);
    return bits ? ops::Matrix::quantized(ops::computed(w), bits, s)
                : ops::Matrix(ops::computed(w));
  };
  auto vector = [&](int size) { return noise_array({size}, ++seed); };
  auto attention_norm = vector(kHidden);
  auto ffn_norm = vector(kHidden);
  int up = kind == Kind::gpt2 ? kFfn : 2 * kFfn;
  ops::DecoderLayer layer{
      {attention_norm, kEps},
      matrix(3 * kHidden, kHidden),
      matrix(kHidden, kHidden),
      {ffn_norm, kEps},
      matrix(up, kHidden),
      matrix(kHidden, kFfn)};
  if (kind == Kind::gpt2) {
    layer.attention_norm.b = vector(kHidden);
    layer.ffn_norm.b = vector(kHidden);
    for (auto* each : {&layer.qkv, &layer.out, &layer.up, &layer.down}) {
      each->b = vector(each->w.rows());
    }
    layer.activation = ops::Activation::gelu_tanh;
  }
  return layer;
}

struct Stack {
  mx::Stream s = cpu_stream();
  std::optional<mx::array> frequencies;
  std::vector<ops::DecoderLayer> layers;
  std::vector<ops::LayerCache> caches;
  int past = 0;

  Stack(int batch, int bits, int cache_bits, Kind kind = Kind::llama) {
    if (kind == Kind::llama) {
      frequencies = ops::rotary_frequencies(64, {});
    }
    auto [shape, dtype] = ops::cache_shape(
        {batch, kHeads, kCapacity, 64}, mx::float16, cache_bits);
    for (int i = 0; i < kLayers; ++i) {
      layers.push_back(layer_of(kind, 100 * i, bits, s));
      caches.push_back(
          {ops::make_cache(shape, dtype, s), ops::make_cache(shape, dtype, s)});
    }
  }

  // The last layer's two heads and the first one's second are watched.
  std::vector<ops::DecoderRun> runs(int length) {
    std::vector<ops::DecoderRun> all;
    for (int i = 0; i < kLayers; ++i) {
      std::vector<int> heads;
      if (i != 1) {
        heads = i == 0 ? std::vector{1} : std::vector{1, 0};
      }
      all.push_back(
          {&layers[i], &caches[i], {heads, length, 0, past + length}});
    }
    return all;
  }

  // The result and the watched weights.
  std::vector<mx::array> fused(const mx::array& x) {
    auto made = ops::decoder_layers(input(x), s);
    past += x.shape(1);
    made.weights.insert(made.weights.begin(), made.x);
    return made.weights;
  }

  ops::DecoderInput input(const mx::array& x) {
    return {x, runs(x.shape(1)), frequencies, past};
  }

  std::vector<mx::array> in_parts(const mx::array& x) {
    std::vector<mx::array> made{x};
    for (auto& [layer, cache, watch] : runs(x.shape(1))) {
      const auto& y = made[0];
      auto qkv = ops::norm_linear(
          y, layer->attention_norm, layer->qkv.w, {.bias = layer->qkv.b}, s);
      auto attention = ops::projected_attention(
          {qkv, frequencies, *cache, past, watch}, layer->out, y, s);
      *cache = attention.cache;
      made.insert(
          made.end(), attention.weights.begin(), attention.weights.end());
      made[0] = ops::decoder_feed_forward(attention.out, *layer, s);
    }
    past += x.shape(1);
    return made;
  }
};

void check_same(
    const std::vector<mx::array>& found,
    const std::vector<mx::array>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bits(found[i], expected[i]));
  }
}

mx::array positions(int batch, int length, int seed) {
  return noise_array({batch, length, kHidden}, 1000 + seed);
}

} // namespace

TEST_CASE("quantized layers that run as one op are their parts") {
  for (Kind kind : {Kind::llama, Kind::gpt2}) {
    for (int bits : {8, 4}) {
      for (int cache_bits : {0, 8, 4}) {
        for (int batch : {1, 2}) {
          CAPTURE(bits);
          CAPTURE(cache_bits);
          CAPTURE(batch);
          Stack whole(batch, bits, cache_bits, kind);
          Stack parts(batch, bits, cache_bits, kind);
          // The caches of one step are what the next one reads.
          for (int length : {1, 3, 16, 1}) {
            CAPTURE(length);
            auto x = positions(batch, length, length);
            REQUIRE(cpu::fits_fused_decoder(whole.input(x)));
            check_same(whole.fused(x), parts.in_parts(x));
          }
        }
      }
    }
  }
}

TEST_CASE("several sequences in one step have what each has alone") {
  for (Kind kind : {Kind::llama, Kind::gpt2}) {
    for (int bits : {0, 8, 4}) {
      for (int count : {2, 3, 8}) {
        CAPTURE(bits);
        CAPTURE(count);
        std::vector<Stack> together, alone;
        for (int i = 0; i < count; ++i) {
          int batch = 1 + i % 2, cache_bits = bits ? 8 : 0;
          for (auto* stacks : {&together, &alone}) {
            stacks->emplace_back(batch, bits, cache_bits, kind);
            stacks->back().fused(positions(batch, 1 + 3 * i, i)); // the past
          }
        }
        for (int step = 0; step < 3; ++step) {
          std::vector<ops::DecoderInput> inputs;
          std::vector<std::vector<mx::array>> expected;
          for (int i = 0; i < count; ++i) {
            auto x = positions(1 + i % 2, 1, 100 * step + i);
            inputs.push_back(together[i].input(x));
            ++together[i].past;
            expected.push_back(alone[i].fused(x));
          }
          auto made = ops::decoder_steps(inputs, cpu_stream());
          REQUIRE(std::ssize(made.weights) == count);
          int row = 0;
          for (int i = 0; i < count; ++i) {
            int end = row + 1 + i % 2;
            auto own =
                mx::slice(made.x, {row, 0, 0}, {end, 1, kHidden}, cpu_stream());
            row = end;
            made.weights[i].insert(made.weights[i].begin(), own);
            check_same(made.weights[i], expected[i]);
          }
        }
      }
    }
  }
}

namespace {

// softmax(q · kᵀ / 8) · v of one row of heads side by side, by float64.
Values attention_of(const Values& qkv, int length) {
  Values out(size_t(length) * kHidden);
  for (int head = 0; head < kHeads; ++head) {
    auto at = [&](int t, int part, int c) {
      return qkv[(size_t(t) * 3 + part) * kHidden + head * 64 + c];
    };
    for (int t = 0; t < length; ++t) {
      Values scores(t + 1);
      for (int u = 0; u <= t; ++u) {
        for (int c = 0; c < 64; ++c) {
          scores[u] += at(t, 0, c) * at(u, 1, c) / 8.0;
        }
      }
      double total = 0.0;
      for (double& score : scores) {
        total += score = std::exp(score);
      }
      for (int c = 0; c < 64; ++c) {
        double& sum = out[size_t(t) * kHidden + head * 64 + c];
        for (int u = 0; u <= t; ++u) {
          sum += scores[u] / total * at(u, 2, c);
        }
      }
    }
  }
  return out;
}

} // namespace

TEST_CASE("attention without frequencies rotates nothing") {
  auto s = cpu_stream();
  mx::Shape shape{1, kHeads, 8, 64};
  auto qkv = noise_array({1, 5, 3 * kHidden}, 7);
  auto expected = attention_of(values(qkv), 5);
  for (auto [backend, self_attention, stream] :
       backend_ops(cpu::self_attention, reference::self_attention)) {
    CAPTURE(backend);
    auto empty = [&] { return ops::make_cache(shape, mx::float32, stream); };
    auto made =
        self_attention({qkv, std::nullopt, {empty(), empty()}, 0}, stream);
    CHECK(relative_error(made.out, expected) < graph_tolerance(1e-5));
  }
}

TEST_CASE("layers that run as one op and layers that do not take turns") {
  Stack mixed(2, 8, 8), parts(2, 8, 8);
  int seed = 0;
  for (int length : {17, 1, 20, 2, 1}) {
    auto x = positions(2, length, ++seed);
    CHECK(
        cpu::fits_fused_decoder(mixed.input(x)) ==
        (length <= ops::kBatchInvariantRows));
    check_same(mixed.fused(x), parts.in_parts(x));
  }
}

TEST_CASE("a step that is queued runs after the one before it") {
  Stack queued(2, 8, 8), waiting(2, 8, 8);
  std::vector<mx::array> all, expected;
  for (int step = 0; step < 6; ++step) {
    auto x = positions(2, 1, step);
    all.push_back(queued.fused(x)[0]);
    expected.push_back(ops::computed(waiting.fused(x)[0]));
  }
  mx::eval(all.back()); // the caches order the rest
  check_same(all, expected);
}

TEST_CASE("layers of floats or with caches that drop positions run by parts") {
  auto x = positions(2, 1, 1);
  Stack floats(2, 0, 0);
  CHECK(!cpu::fits_fused_decoder(floats.input(x)));
  Stack parts(2, 0, 0);
  check_same(floats.fused(x), parts.in_parts(x));
  Stack dropping(2, 8, 8);
  dropping.caches[1].eviction = ops::Eviction{
      mx::zeros({2, kHeads}, mx::int32),
      mx::zeros({2, kHeads, kCapacity}),
      0.5f};
  CHECK(!cpu::fits_fused_decoder(dropping.input(x)));
}

TEST_CASE("positions of another width than the layers are refused") {
  Stack stack(2, 8, 8);
  CHECK_THROWS_WITH_AS(
      stack.fused(noise_array({2, 1, 2 * kHidden}, 1)),
      "rows of 256 numbers do not fit a matrix of 128 columns",
      Error);
}
