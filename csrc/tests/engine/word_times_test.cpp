#include "nightingale/engine/word_times.h"

#include <doctest/doctest.h>

#include "nightingale/engine/text_path.h"

using namespace nightingale;

namespace {

std::vector<double> edges(const std::vector<WordTime>& words) {
  std::vector<double> found;
  for (const auto& word : words) {
    found.push_back(word.start);
    found.push_back(word.end);
  }
  return found;
}

} // namespace

TEST_CASE("a word begins with its first token and ends where the next begins") {
  WordTimes times(3, {0, 1, 1, 2}, 2); // 20 ms a token
  times.set_positions({-1, 1, 1, 2, 3, 4});
  CHECK(edges(times.take(0.05)).empty());
  auto first = times.take(0.06);
  REQUIRE(first.size() == 1);
  CHECK(first[0].word == 0);
  CHECK(edges(first) == std::vector<double>{1 * 0.02, 3 * 0.02});
  CHECK(
      edges(times.take_rest(0.11)) ==
      std::vector<double>{3 * 0.02, 5 * 0.02, 5 * 0.02, 0.11});
}

TEST_CASE("words that begin with one token share its time") {
  WordTimes times(2, {0, 1});
  times.set_positions({2, 2});
  CHECK(edges(times.take_rest(1)) == std::vector<double>{0, 0.04, 0.04, 0.08});
}

TEST_CASE("words that were given stay before those that move") {
  WordTimes times(3, {0, 1, 2});
  times.set_positions({1, 1, 1, 1, 2, 2, 3});
  CHECK(edges(times.take(0.16)) == std::vector<double>{0, 0.16});
  times.set_positions({1, 1, 2, 2, 2, 3, 3, 3});
  CHECK(
      edges(times.take_rest(0.32)) ==
      std::vector<double>{0.16, 5 * 0.04, 5 * 0.04, 0.32});
}

TEST_CASE("a path through the text never goes back") {
  // The third query looks back.
  std::vector<float> weights{
      0.9f, 0.1f, 0.1f, 0.1f, 0.9f, 0.1f, 0.9f, 0.2f, 0.1f, 0.1f, 0.1f, 0.9f};
  CHECK(monotonic_path(weights, 3, true) == std::vector<int>{0, 1, 1, 2});
  CHECK(monotonic_path({0.2f, 0.7f}, 2, true) == std::vector<int>{1});
  CHECK(monotonic_path({1, 1, 1}, 1, true) == std::vector<int>{0, 0, 0});
}
