#include "nightingale/engine/sentence_cache.h"

#include <doctest/doctest.h>

#include "tiny_session.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

SentenceChunks sentence(int samples) {
  return {{std::vector<float>(samples, 0.5f), {1, 2}, {}}};
}

std::shared_ptr<Model> caching_model() {
  auto model = std::make_shared<Model>(*tiny_model());
  model->sentences = std::make_shared<SentenceCache>(64 << 20);
  return model;
}

// Two segments with words.
std::vector<SpokenChunk> spoken(
    std::shared_ptr<const Model> model,
    std::shared_ptr<const Manner> manner) {
  Session session(model, {.followed = std::vector<AlignmentHead>{{0, 1}}});
  std::vector<SpokenChunk> chunks;
  for (int number : {0, 1}) {
    auto made = segment(manner, number);
    made.words = 3;
    made.word_of.assign(made.text_tokens.size(), 0);
    made.word_of[4] = 1;
    made.word_of[6] = 2;
    session.add(made);
    for (auto& chunk : rest_of(session)) {
      chunks.push_back(std::move(chunk));
    }
  }
  return chunks;
}

void check_same(
    const std::vector<SpokenChunk>& found,
    const std::vector<SpokenChunk>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    const auto &one = found[i], &other = expected[i];
    CHECK(one.samples == other.samples);
    CHECK(one.tokens == other.tokens);
    CHECK(one.segment == other.segment);
    CHECK(one.offset == other.offset);
    CHECK(one.text_tokens == other.text_tokens);
    CHECK(one.spoken == other.spoken);
    REQUIRE(one.words.size() == other.words.size());
    for (size_t w = 0; w < one.words.size(); ++w) {
      CHECK(one.words[w].word == other.words[w].word);
      CHECK(one.words[w].start == other.words[w].start);
      CHECK(one.words[w].end == other.words[w].end);
    }
  }
}

} // namespace

TEST_CASE("a cache of sentences stays below its limit") {
  SentenceCache cache(20'000);
  for (int number = 0; number < 10; ++number) {
    cache.keep(std::to_string(number), sentence(1000)); // 4 kB and more
    CHECK(cache.counts().bytes <= 20'000);
    CHECK(cache.find("0")); // asked for again and again
  }
  CHECK(cache.counts().sentences == 4);
  CHECK(cache.find("9"));
  CHECK(cache.find("8"));
  CHECK(cache.find("7"));
  CHECK_FALSE(cache.find("6")); // not asked for the longest
  cache.keep("long", sentence(10'000));
  CHECK_FALSE(cache.find("long"));
  CHECK(cache.counts().sentences == 4);
  CHECK(cache.counts().hits == 13);
  CHECK(cache.counts().misses == 2);
}

TEST_CASE("keys are those of equal values only") {
  auto key = [](auto... values) {
    CacheKey made;
    (made.add(values), ...);
    return made.take();
  };
  using Numbers = std::vector<int>;
  CHECK(key(Numbers{1, 2}, Numbers{3}) != key(Numbers{1}, Numbers{2, 3}));
  CHECK(key(std::string("ab"), 1) != key(std::string("a"), 1));
  CHECK(key(std::optional<int>(), 0) != key(std::optional(0), 0));
  CHECK(key(1.0f, 2) == key(1.0f, 2));
}

TEST_CASE("a sentence from the cache has the chunks it was spoken with") {
  for (auto first_chunk : {std::optional<int>(), std::optional(5)}) {
    auto model = caching_model();
    auto manner = tiny_manner(first_chunk);
    manner->voice_digest = "a voice";
    auto expected = spoken(tiny_model(), manner);
    CHECK(expected.size() >= 2);
    check_same(spoken(model, manner), expected);
    auto passes = model->scheduler->passes();
    check_same(spoken(model, manner), expected);
    CHECK(model->scheduler->passes() == passes);
    CHECK(model->sentences->counts().hits == 2);
    CHECK(model->sentences->counts().misses == 2);
  }
}

TEST_CASE("another voice, seed, option or place in the text is spoken") {
  auto model = caching_model();
  auto say = [&](auto change) {
    auto manner = tiny_manner(5);
    manner->voice_digest = "a voice";
    change(*manner);
    spoken(model, manner);
    return model->sentences->counts().hits;
  };
  CHECK(say([](Manner&) {}) == 0);
  CHECK(say([](Manner& m) { m.voice_digest = "another"; }) == 0);
  CHECK(say([](Manner& m) { m.options.seed = 1; }) == 0);
  CHECK(say([](Manner& m) { m.options.temperature = 0.7f; }) == 0);
  CHECK(say([](Manner& m) { m.options.first_chunk = 6; }) == 0);
  CHECK(say([](Manner& m) { m.speed = 1.25; }) == 0);
  CHECK(say([](Manner& m) { m.voice_digest.clear(); }) == 0); // never cached
  CHECK(say([](Manner&) {}) == 2);
  Session later(model, {.followed = std::vector<AlignmentHead>{{0, 1}}});
  auto manner = tiny_manner(5);
  manner->voice_digest = "a voice";
  later.add({nullptr, {}, 0, {}, 10});
  later.add(segment(manner, 0)); // the second of its text
  rest_of(later);
  CHECK(model->sentences->counts().hits == 2);
}

TEST_CASE("a sentence that was cancelled is not kept") {
  auto model = caching_model();
  auto manner = tiny_manner(5);
  manner->voice_digest = "a voice";
  {
    Session session(model, {});
    session.add(segment(manner, 0));
    while (!session.step()) {
    }
  }
  CHECK(model->sentences->counts().sentences == 0);
}
