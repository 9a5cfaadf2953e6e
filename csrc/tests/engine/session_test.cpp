#include "nightingale/engine/session.h"

#include <doctest/doctest.h>

#include "nightingale/ops/alignment.h"
#include "tiny_session.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Three segments, each given when it is wanted.
std::vector<SpokenChunk> spoken(
    std::shared_ptr<const Manner> manner,
    bool together) {
  Session session(tiny_model(), {.together = together});
  std::vector<SpokenChunk> chunks;
  for (int number = 0; number < 3 || !session.done();) {
    while (number < 3 && session.wants_segment()) {
      session.add(segment(manner, number++));
    }
    if (auto chunk = session.step()) {
      chunks.push_back(std::move(*chunk));
    }
  }
  return chunks;
}

} // namespace

TEST_CASE("a session in chunks has the tokens and the length of the whole") {
  auto whole = spoken(tiny_manner(std::nullopt), false);
  auto chunks = spoken(tiny_manner(5), false);
  CHECK(whole.size() == 3);
  CHECK(chunks.size() > 6);
  auto expected = joined(whole), found = joined(chunks);
  CHECK(found.tokens == expected.tokens);
  CHECK(found.samples.size() == expected.samples.size());
  CHECK(chunks.back().spoken == int64_t(found.samples.size()));
  for (const auto& chunk : whole) {
    size_t sounding =
        kTokenSamples * (chunk.tokens.size() - 1); // the last is dropped
    CHECK(chunk.samples.size() == sounding + 100 + chunk.segment);
    CHECK(chunk.text_tokens == 8 + chunk.segment);
  }
  CHECK(whole[1].offset == whole[0].samples.size() / 24000.0);
}

TEST_CASE("segments spoken together are those spoken one by one") {
  for (auto first_chunk : {std::optional<int>(), std::optional(5)}) {
    auto alone = joined(spoken(tiny_manner(first_chunk), false));
    auto together = joined(spoken(tiny_manner(first_chunk), true));
    CHECK(together.tokens == alone.tokens);
    CHECK(together.samples == alone.samples);
  }
}

TEST_CASE("another speed changes the number of samples and no token") {
  auto manner = tiny_manner(5);
  auto plain = joined(spoken(manner, false));
  manner->speed = 2;
  auto fast = joined(spoken(manner, false));
  CHECK(fast.tokens == plain.tokens);
  CHECK(fast.samples.size() < plain.samples.size() * 0.6);
}

TEST_CASE("a long silence comes in chunks of a second") {
  Session session(tiny_model(), {});
  Segment pause;
  pause.silence = 2 * kSampleRate + 5;
  session.add(pause);
  auto chunks = rest_of(session);
  REQUIRE(chunks.size() == 3);
  CHECK(chunks[0].samples == std::vector<float>(kSampleRate, 0.0f));
  CHECK(chunks[2].samples.size() == 5);
  CHECK_THROWS_AS(session.step(), std::invalid_argument);
}

TEST_CASE("closing tokens are heard and are none of the speech's") {
  auto say = [](std::vector<int> closing) {
    Session session(tiny_model(), {.closing_tokens = std::move(closing)});
    session.add(segment(tiny_manner(std::nullopt), 0));
    return joined(rest_of(session));
  };
  auto plain = say({}), closed = say({4299, 4299, 4299});
  CHECK(closed.tokens == plain.tokens);
  CHECK(closed.samples.size() == plain.samples.size() + 3 * kTokenSamples);
}

TEST_CASE("a model that says nothing is told of, and the next segment spoken") {
  TinyT3 tiny;
  tiny.stops_at_once = true;
  auto model = std::make_shared<Model>(*tiny_model());
  model->t3 = tiny.load();
  auto manner = tiny_manner(std::nullopt);
  manner->voice = model->t3->condition(tiny_voice());
  Session session(model, {});
  session.add(segment(manner, 0));
  CHECK(rest_of(session).empty());
  auto ended = session.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].silent);
  session.add({nullptr, {}, 0, {}, 7});
  CHECK(rest_of(session).size() == 1);
  ended = session.take_ended();
  REQUIRE(ended.size() == 1);
  CHECK_FALSE(ended[0].silent);
}

TEST_CASE("sound that is not finite ends the session with the stage's name") {
  auto manner = tiny_manner(std::nullopt);
  auto voice = *manner->flow_voice;
  std::fill(voice.prompt_mel.begin(), voice.prompt_mel.end(), 1e38f);
  manner->flow_voice = std::make_shared<FlowVoice>(voice);
  Session session(tiny_model(), {});
  session.add(segment(manner, 0));
  CHECK_THROWS_WITH_AS(rest_of(session), "flow", NotFinite);
}

TEST_CASE("tokens after a forced stop came too late") {
  using namespace ops;
  std::vector<int> tokens{5, 6, 7, 7, 7}, positions{1, 2, 9, 3, 3};
  CHECK(count_astray(tokens, positions, 12, 0) == 0);
  CHECK(count_astray(tokens, positions, 12, kTokenRepetition) == 2);
  CHECK(count_astray(tokens, positions, 12, kTextRepetition) == 2);
  CHECK(count_astray({7, 7, 7, 7, 7, 7}, {}, 12, kTokenRepetition) == 3);
  CHECK(count_astray({7}, {1}, 12, kTokenRepetition) == 0);
}
