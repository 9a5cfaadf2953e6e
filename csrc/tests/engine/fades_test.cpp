#include "nightingale/engine/fades.h"

#include <doctest/doctest.h>

#include "nightingale/engine/chunk_ends.h"
#include "nightingale/family.h"

using namespace nightingale;

namespace {

// Frames whose values are their numbers, from `first` on.
std::vector<float> numbered(int first, int count) {
  std::vector<float> mel;
  for (int frame = first; frame < first + count; ++frame) {
    mel.insert(mel.end(), kMels, float(frame));
  }
  return mel;
}

// The first value of each frame.
std::vector<float> values_of(const std::vector<float>& mel) {
  std::vector<float> values;
  for (size_t i = 0; i < mel.size(); i += kMels) {
    values.push_back(mel[i]);
  }
  return values;
}

std::vector<int> first_ends(ChunkEnds ends, int count) {
  std::vector<int> found;
  for (; count > 0 && ends.next(); --count, ends.advance()) {
    found.push_back(*ends.next());
  }
  return found;
}

} // namespace

TEST_CASE("a chunk fades in over what the last one had to say") {
  auto mixed = cross_fade({4, 4}, {0, 0, 8});
  CHECK(mixed == std::vector<float>{3, 1, 8});
  CHECK(cross_fade({}, {1, 2}) == std::vector<float>{1, 2});
}

TEST_CASE("a new solution takes over within two frames") {
  auto mel = blend(numbered(0, 5), numbered(100, 4), 2);
  CHECK(
      values_of(mel) ==
      std::vector<float>{
          0, 1, 0.75f * 2 + 25, 0.25f * 3 + 0.75f * 101, 102, 103});
  CHECK(values_of(blend({}, numbered(7, 2), 0)) == std::vector<float>{7, 8});
  // What is solved anew may be shorter than what may still change.
  CHECK(
      values_of(blend(numbered(0, 4), numbered(9, 1), 2)) ==
      std::vector<float>{0, 1, 5.5f});
}

TEST_CASE("a sentence begins with 20 ms of silence and 20 ms of fade-in") {
  std::vector<float> samples(1000, 1.0f);
  fade_in(samples);
  CHECK(samples[479] == 0.0f);
  CHECK(samples[480] == 0.0f);
  CHECK(samples[720] == doctest::Approx(0.5).epsilon(0.01));
  CHECK(samples[959] == 1.0f);
  CHECK(samples[999] == 1.0f);
  // In two parts it is the same.
  std::vector<float> first(700, 1.0f), second(300, 1.0f);
  fade_in(first);
  fade_in(second, 700);
  first.insert(first.end(), second.begin(), second.end());
  CHECK(first == samples);
}

TEST_CASE("a sentence ends with 10 ms of fade-out") {
  std::vector<float> samples(500, 1.0f);
  fade_out(samples);
  CHECK(samples[260] == 1.0f);
  CHECK(samples[261] == float(1 - 1.0 / 239));
  CHECK(samples.back() == 0.0f);
  std::vector<float> one{0.5f}, none;
  fade_out(one);
  fade_out(none);
  CHECK(one == std::vector<float>{0.5f});
}

TEST_CASE("a mel at another speed is linear between its frames") {
  auto mel = numbered(0, 10);
  CHECK(
      values_of(stretch(mel, 2, 0, 5)) ==
      std::vector<float>{0.5f, 2.5f, 4.5f, 6.5f, 8.5f});
  CHECK(stretched_length(10, 2) == 5);
  CHECK(stretched_length(5, 2) == 2); // half-way: to even
  CHECK(stretched_length(1, 2) == 1);
  CHECK(stretch(mel, 1, 3, 5) == numbered(3, 2));
}

TEST_CASE("stretched frames that are determined do not change") {
  for (double speed : {0.25, 0.5, 0.8, 1.0, 1.3, 2.0, 4.0}) {
    CAPTURE(speed);
    auto whole =
        stretch(numbered(0, 30), speed, 0, stretched_length(30, speed));
    for (int known : {0, 1, 2, 7, 29}) {
      int count = determined_length(known, speed);
      auto part = stretch(numbered(0, known), speed, 0, count);
      REQUIRE(part.size() == size_t(count) * kMels);
      CHECK(std::equal(part.begin(), part.end(), whole.begin()));
      // The frames before 3 were forgotten.
      int begin = determined_length(4, speed) + 1;
      if (known == 29) {
        auto later = stretch(numbered(3, 26), speed, begin, count, 3);
        CHECK(std::equal(
            later.begin(), later.end(), whole.begin() + begin * kMels));
      }
    }
  }
}

TEST_CASE("chunks grow by half up to 100 tokens") {
  SpeechOptions options;
  CHECK(
      first_ends(ChunkEnds(options), 8) ==
      std::vector<int>{10, 35, 73, 129, 213, 313, 413, 513});
  options.chunk = 120;
  CHECK(first_ends(ChunkEnds(options), 3) == std::vector<int>{10, 130, 250});
  options.first_chunk.reset();
  CHECK(first_ends(ChunkEnds(options), 3).empty());
  CHECK(
      first_ends(ChunkEnds(std::vector<int>{4, 9}), 3) ==
      std::vector<int>{4, 9});
}
