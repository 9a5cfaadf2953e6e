#include "nightingale/backends/cpu/eviction.h"

#include <doctest/doctest.h>

#include <numeric>

#include "backends/cpu/thread_count.h"
#include "mlx/ops.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;
using cpu::EvictedHead;

namespace {

// Heads whose vectors are one int: the position they stand for.
struct IntHeads {
  std::vector<std::vector<int>> keys, values;
  std::vector<std::vector<float>> mass;

  void add(const std::vector<float>& masses) {
    std::vector<int> positions(masses.size());
    std::iota(positions.begin(), positions.end(), 0);
    keys.push_back(positions);
    values.push_back(positions);
    mass.push_back(masses);
  }

  // What is left of each head.
  std::vector<std::vector<int>> evict(int kept, int length, float budget) {
    std::vector<EvictedHead> heads;
    for (size_t i = 0; i < keys.size(); ++i) {
      heads.push_back(
          {reinterpret_cast<char*>(keys[i].data()),
           reinterpret_cast<char*>(values[i].data()),
           sizeof(int),
           mass[i].data(),
           static_cast<int>(keys[i].size())});
    }
    auto dropped = cpu::evict(heads, kept, length, budget);
    for (size_t i = 0; i < keys.size(); ++i) {
      keys[i].resize(keys[i].size() - dropped[i]);
      values[i].resize(keys[i].size());
      CHECK(keys[i] == values[i]);
      mass[i].resize(keys[i].size());
    }
    return keys;
  }
};

std::vector<float> flat(int count) {
  return std::vector<float>(count, 1.0f);
}

bool contains(const std::vector<int>& places, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    if (!std::ranges::binary_search(places, i)) {
      return false;
    }
  }
  return true;
}

} // namespace

TEST_CASE("a budget is looked at every 16 positions after the prompt") {
  CHECK_FALSE(cpu::evicts(0, 100, 100));
  CHECK_FALSE(cpu::evicts(100, 115, 100));
  CHECK(cpu::evicts(115, 116, 100));
  CHECK_FALSE(cpu::evicts(116, 117, 100));
  CHECK(cpu::evicts(120, 140, 100));
}

TEST_CASE("shares are in proportion, whole, and no more than can be taken") {
  using Ints = std::vector<int>;
  CHECK(cpu::share(10, {1.0, 1.0}, {100, 100}) == Ints{5, 5});
  CHECK(cpu::share(12, {1.0, 3.0}, {100, 100}) == Ints{3, 9});
  CHECK(cpu::share(12, {1.0, 3.0}, {100, 4}) == Ints{8, 4});
  CHECK(cpu::share(100, {1.0, 3.0, 2.0}, {3, 5, 7}) == Ints{3, 5, 7});
  CHECK(cpu::share(0, {1.0, 3.0}, {9, 9}) == Ints{0, 0});
  CHECK(cpu::share(7, {0.0, 0.0}, {0, 0}) == Ints{0, 0});
}

TEST_CASE("what is dropped is old, light and over the budget") {
  IntHeads heads;
  auto masses = flat(100);
  for (int i : {30, 41, 59}) {
    masses[i] = 1.5f;
  }
  heads.add(masses);
  auto left = heads.evict(20, 100, 0.5f)[0];
  CHECK(left.size() == 20 + 40); // half of 80
  CHECK(contains(left, 0, 20)); // the prompt
  CHECK(contains(left, 80, 100)); // half the budget is the latest
  CHECK(contains(left, 30, 31));
  CHECK(contains(left, 41, 42));
  CHECK(contains(left, 59, 60));
  CHECK(std::ranges::is_sorted(left));
  CHECK(contains(left, 63, 80)); // of equals the later
}

TEST_CASE("heads that look at few places leave their share to the others") {
  IntHeads heads;
  heads.add(flat(100));
  auto few = std::vector<float>(100, 0.0f);
  few[25] = 5.0f;
  few[26] = 5.0f;
  heads.add(few);
  auto left = heads.evict(20, 100, 0.5f);
  CHECK(left[0].size() == 20 + 20 + 29);
  CHECK(left[1].size() == 20 + 20 + 10);
  CHECK(left[0].size() + left[1].size() <= 2 * 60);
  CHECK(left[0].size() + left[1].size() >= 2 * 60 - 2); // rounded down
  CHECK(contains(left[1], 25, 27));
}

TEST_CASE("a small budget keeps the latest, a whole one everything") {
  IntHeads heads;
  heads.add(flat(100));
  CHECK(heads.evict(20, 100, 1.0f)[0].size() == 100);
  auto left = heads.evict(20, 100, 0.02f)[0];
  CHECK(left.size() == 20 + cpu::kLeastRecent);
  CHECK(contains(left, 100 - cpu::kLeastRecent, 100));
  CHECK(heads.evict(20, 100, 0.02f)[0] == left); // nothing more to drop
}

TEST_CASE("masses that are not numbers weigh nothing") {
  IntHeads heads;
  auto masses = flat(100);
  masses[30] = NAN;
  masses[31] = -1.0f;
  heads.add(masses);
  auto left = heads.evict(20, 100, 0.9f)[0];
  CHECK(left.size() == 20 + 72);
  CHECK_FALSE(contains(left, 30, 31));
  CHECK_FALSE(contains(left, 31, 32));
}

namespace {

constexpr int kHeads = 2, kDepth = 64, kCapacity = 200;

ops::LayerCache layer_cache(float budget, mx::Dtype dtype = mx::float32) {
  auto s = cpu_stream();
  mx::Shape shape{2, kHeads, kCapacity, kDepth};
  return {
      cpu::make_cache(shape, dtype, s),
      cpu::make_cache(shape, dtype, s),
      std::nullopt,
      ops::Eviction{
          mx::zeros({2, kHeads}, mx::int32, s),
          cpu::make_cache({2, kHeads, kCapacity}, mx::float32, s),
          budget,
          20}};
}

struct Run {
  std::vector<mx::array> out, weights;
  ops::LayerCache cache;
};

// A prompt of 20 positions, then one at a time.
Run run(ops::LayerCache cache, int steps) {
  auto s = cpu_stream();
  auto frequencies = ops::rotary_frequencies(kDepth, {});
  ops::AttentionWatch watch{{1}, 1, 5, 10};
  Run result{{}, {}, std::move(cache)};
  int past = 0;
  for (int step = 0; step <= steps; ++step) {
    int length = step == 0 ? 20 : 1;
    auto qkv = noise_array({2, length, 3 * kHeads * kDepth}, 100 + step);
    auto made =
        cpu::self_attention({qkv, frequencies, result.cache, past, watch}, s);
    mx::eval(made.out, made.weights[0]);
    result.out.push_back(made.out);
    result.weights.push_back(made.weights[0]);
    result.cache = made.cache;
    past += length;
  }
  return result;
}

} // namespace

TEST_CASE("attention that may drop everything but does not is self_attention") {
  auto s = cpu_stream();
  auto found = run(layer_cache(1.0f), 40);
  auto empty = layer_cache(1.0f);
  auto keys = empty.keys, values_ = empty.values;
  auto frequencies = ops::rotary_frequencies(kDepth, {});
  ops::AttentionWatch watch{{1}, 1, 5, 10};
  int past = 0;
  for (size_t step = 0; step < found.out.size(); ++step) {
    int length = step == 0 ? 20 : 1;
    auto qkv = noise_array({2, length, 3 * kHeads * kDepth}, 100 + step);
    auto made = cpu::self_attention(
        {qkv, frequencies, {keys, values_}, past, watch}, s);
    CHECK(same_bits(made.out, found.out[step]));
    CHECK(same_bits(made.weights[0], found.weights[step]));
    keys = made.cache.keys;
    values_ = made.cache.values;
    past += length;
  }
  CHECK(values(found.cache.eviction->dropped) == Values(4, 0.0));
  // Every row of every query gave 1 in all.
  double total = 0.0;
  auto mass = floats(found.cache.eviction->mass);
  for (int i = 0; i < 60; ++i) {
    total += mass[i];
  }
  CHECK(total == doctest::Approx(60.0));
}

TEST_CASE("what is left of a cache is attended to as before") {
  for (mx::Dtype dtype : kFloatTypes) {
    auto whole = run(layer_cache(1.0f, dtype), 32);
    auto half = run(layer_cache(0.5f, dtype), 32);
    for (int step = 0; step <= 16; ++step) {
      CHECK(same_bits(whole.out[step], half.out[step]));
    }
    CHECK_FALSE(same_bits(whole.out[17], half.out[17]));
    auto dropped = values(half.cache.eviction->dropped);
    CHECK(dropped[0] + dropped[1] >= 2 * 16);
    CHECK(dropped[0] + dropped[1] <= 2 * 16 + 4);
    // The prompt is where it was.
    auto s = cpu_stream();
    auto prompt = [&](const mx::array& cache) {
      return mx::slice(cache, {0, 0, 0, 0}, {2, kHeads, 20, kDepth}, s);
    };
    CHECK(same_bits(prompt(whole.cache.keys), prompt(half.cache.keys)));
  }
}

TEST_CASE("what is dropped does not depend on the number of threads") {
  auto outputs = [](int threads) {
    ThreadCount count(threads);
    return run(layer_cache(0.3f), 80);
  };
  auto one = outputs(1), three = outputs(3);
  for (size_t i = 0; i < one.out.size(); ++i) {
    CHECK(same_bits(one.out[i], three.out[i]));
  }
  CHECK(
      values(one.cache.eviction->dropped) ==
      values(three.cache.eviction->dropped));
}
