#include "nightingale/ops/random.h"

#include <doctest/doctest.h>

#include <set>

#include "arrays.h"
#include "mlx/random.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("threefry gives the published Threefry-2x32-20 answers") {
  // From the known-answer file of Random123.
  struct Answer {
    DrawKey counter, key, result;
  };
  const Answer answers[] = {
      {{0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe}},
      {{0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x1cb996fc, 0xbb002be7}},
      {{0x243f6a88, 0x85a308d3},
       {0x13198a2e, 0x03707344},
       {0xc4923a9c, 0x483df7a0}}};
  for (const auto& answer : answers) {
    DrawKey result = threefry(answer.key, answer.counter);
    CHECK(result.low == answer.result.low);
    CHECK(result.high == answer.result.high);
  }
}

TEST_CASE("random words are those of mlx::core::random::bits") {
  DrawKey key{0x12345678, 0x9abcdef0};
  uint32_t words[2] = {key.low, key.high};
  for (int count : {1, 2, 3, 7, 8, 1001, 8194}) {
    CAPTURE(count);
    auto bits = mx::random::bits(
        {count}, 4, mx::array(words, {2}, mx::uint32), graph_stream());
    mx::eval(bits);
    int wrong = 0;
    for (int i = 0; i < count; ++i) {
      wrong += bits.data<uint32_t>()[i] != random_word(key, i, count);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("every part of the position of a draw changes its key") {
  std::set<std::pair<uint32_t, uint32_t>> keys;
  for (uint64_t seed : {0ull, 1ull, 1ull << 32}) {
    for (uint32_t sentence : {0u, 1u, 2u}) {
      for (uint32_t position : {0u, 1u, 2u, 1000u}) {
        auto key =
            draw_key({seed, DrawStage::speech_token, sentence, position});
        keys.insert({key.low, key.high});
      }
    }
  }
  CHECK(keys.size() == 3 * 3 * 4);
}

TEST_CASE("draw keys never change: saved tokens depend on them") {
  auto key = draw_key({42, DrawStage::speech_token, 3, 17});
  DrawKey branch = threefry({42, 0}, {1, 3});
  DrawKey expected = threefry(branch, {17, 0});
  CHECK(key.low == expected.low);
  CHECK(key.high == expected.high);
}
