// A draft changes how long speaking takes and nothing else.

#include <doctest/doctest.h>

#include "backends/cpu/thread_count.h"
#include "backends/gpu/emulated_gpu.h"
#include "nightingale/error.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::string kHeads = R"({"t3": {"alignment_heads": [[0, 1], [2, 0]]}})";

// Deep enough to leave layers out of.
std::shared_ptr<const T3> deep_t3() {
  static const auto model = [] {
    TinyT3 tiny;
    tiny.layers = 6;
    tiny.settings = kHeads;
    return tiny.load();
  }();
  return model;
}

// As deep_t3 has it, but for the depth.
std::shared_ptr<const T3> shallow_t3() {
  static const auto model = [] {
    TinyT3 tiny;
    tiny.layers = 1;
    return tiny.load();
  }();
  return model;
}

// What one spoken token was reported with.
struct Said {
  int token;
  int text_position;
  int stop_forced;
  bool operator==(const Said&) const = default;
};

struct Speech {
  std::vector<Said> said;
  int ended_at; // the text position after the end
  int stop_forced;
  bool operator==(const Speech&) const = default;

  std::vector<int> tokens() const {
    std::vector<int> tokens;
    for (const auto& each : said) {
      tokens.push_back(each.token);
    }
    return tokens;
  }
};

Speech speak(
    const SpeechRequest& request,
    SpeculationCounts* counts = nullptr,
    std::shared_ptr<const T3> model = deep_t3()) {
  SpeechTokens speech(std::move(model), request);
  Speech heard;
  while (auto token = speech.next()) {
    heard.said.push_back(
        {*token, speech.text_position(), speech.stop_forced()});
  }
  CHECK_FALSE(speech.next().has_value());
  heard.ended_at = speech.text_position();
  heard.stop_forced = speech.stop_forced();
  if (counts) {
    *counts = speech.speculation();
  }
  return heard;
}

SpeechRequest request() {
  SpeechRequest r;
  r.text_tokens = {5, 6, 7, 8, 9, 10, 30};
  static const KvCache voice = deep_t3()->condition(tiny_voice());
  r.voice = voice;
  r.options.max_tokens = 24;
  return r;
}

SpeechRequest with(SpeechRequest r, MakeDraft draft, int proposals) {
  r.draft = std::move(draft);
  r.proposals = proposals;
  return r;
}

// Knows what will be said, or something else by `error`.
class Prophet : public Draft {
 public:
  Prophet(std::vector<int> tokens, int error)
      : tokens_(std::move(tokens)), error_(error) {}

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    size_t begin = spoken.tokens.size() - 1;
    std::vector<int> ahead;
    for (size_t i = begin; i < tokens_.size() && count > 0; ++i, --count) {
      ahead.push_back((tokens_[i] + error_) % kStartSpeech);
    }
    return ahead;
  }

 private:
  std::vector<int> tokens_;
  int error_;
};

MakeDraft prophet(std::vector<int> tokens, int error = 0) {
  return [=](const SpeechRequest&) {
    return std::make_unique<Prophet>(tokens, error);
  };
}

struct NamedDraft {
  std::string name;
  MakeDraft make;
};

const std::vector<NamedDraft>& drafts() {
  static const std::vector<NamedDraft> all{
      {"ngram", ngram_draft(tiny_voice().prompt_tokens)},
      {"layers", layer_draft(deep_t3(), {0, 2, 5})},
      {"small model",
       model_draft(shallow_t3(), shallow_t3()->condition(tiny_voice()))},
      {"the model", model_draft(deep_t3(), request().voice)},
      {"all layers", layer_draft(deep_t3(), {0, 1, 2, 3, 4, 5})}};
  return all;
}

const std::vector<std::vector<int>> kTexts{
    {5, 6, 7, 8, 9, 10, 30},
    {40, 41},
    {100, 3, 50, 77, 31, 32, 33, 34, 35, 200}};

} // namespace

TEST_CASE("logits of several positions are those of one, bit for bit") {
  const std::vector<int> speech{
      kStartSpeech, 12, 900, 4, 6000, 12, 12, 77, 1, 3210, 8, 9, 10, 11};
  TinyT3 tiny;
  for (mx::Dtype dtype : kFloatTypes) {
    auto model = tiny.load(dtype);
    auto voice = model->condition(tiny_voice());
    auto alone = floats(model->logits(kTexts[0], speech, voice, 1));
    for (int threads : {1, 2, 3}) {
      ThreadCount count(threads);
      for (int chunk = 1; chunk <= ops::kBatchInvariantRows / 2; ++chunk) {
        CAPTURE(threads);
        CAPTURE(chunk);
        auto together = model->logits(kTexts[0], speech, voice, chunk);
        CHECK(same_bits(floats(together), alone));
      }
    }
  }
}

TEST_CASE("no draft and no number of proposals changes a token") {
  const int numbers[] = {1, 2, 4, 7};
  size_t round = 0; // every draft meets every number in some rounds
  for (const auto& text : kTexts) {
    for (uint64_t seed : {0, 1, 2}) {
      for (float temperature : {0.0001f, 0.8f}) {
        auto plain = request();
        plain.text_tokens = text;
        plain.options.max_tokens = 16;
        plain.options.seed = seed;
        plain.options.temperature = temperature;
        plain.analyser = seed != 1;
        plain.options.cfg_weight = seed == 2 ? 0.0f : 0.5f;
        auto expected = speak(plain);
        for (size_t i = 0; i < drafts().size(); ++i) {
          const auto& draft = drafts()[i];
          int proposals = numbers[(round + i) % std::size(numbers)];
          CAPTURE(seed);
          CAPTURE(temperature);
          CAPTURE(draft.name);
          CAPTURE(proposals);
          CHECK(speak(with(plain, draft.make, proposals)) == expected);
        }
        auto adaptive = plain;
        adaptive.draft = drafts()[round % drafts().size()].make;
        CHECK(speak(adaptive) == expected);
        ++round;
      }
    }
  }
}

TEST_CASE("half weights and any settings leave the tokens alone, too") {
  TinyT3 tiny;
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto model = tiny.load(dtype);
    auto plain = request();
    plain.voice = model->condition(tiny_voice());
    plain.options.temperature = 0.7f;
    plain.options.repetition_penalty = 2.0f;
    plain.options.min_p = 0.01f;
    plain.options.top_p = 0.9f;
    plain.sentence = 3;
    plain.min_tokens = 4;
    auto expected = speak(plain, nullptr, model);
    for (int proposals : {1, 3, 7}) {
      CAPTURE(proposals);
      auto guessed = with(plain, layer_draft(model, {0}), proposals);
      CHECK(speak(guessed, nullptr, model) == expected);
    }
  }
}

TEST_CASE("a draft that is always right is always accepted") {
  auto plain = request();
  plain.options.max_tokens = 25;
  auto expected = speak(plain);
  REQUIRE(expected.said.size() == 25);
  for (int proposals : {1, 2, 5, 7}) {
    CAPTURE(proposals);
    SpeculationCounts counts;
    auto draft = prophet(expected.tokens());
    CHECK(speak(with(plain, draft, proposals), &counts) == expected);
    // One token by the prompt; of the other 24 each round brings one more than
    // was proposed.
    CHECK(counts.accepted == counts.proposed);
    CHECK(counts.rounds == (24 + proposals) / (proposals + 1));
    CHECK(counts.accepted + counts.rounds == 24);
  }
}

TEST_CASE("the model as its own draft is always right without an analyser") {
  auto plain = request();
  plain.options.max_tokens = 30;
  for (const auto& draft : drafts()) {
    if (draft.name != "the model" && draft.name != "all layers") {
      continue;
    }
    CAPTURE(draft.name);
    SpeculationCounts counts;
    speak(with(plain, draft.make, 4), &counts);
    CHECK(counts.proposed > 20);
    CHECK(counts.accepted == counts.proposed);
  }
}

TEST_CASE("a draft that is always wrong is never accepted") {
  auto plain = request();
  auto expected = speak(plain);
  for (int proposals : {1, 2, 7}) {
    CAPTURE(proposals);
    SpeculationCounts counts;
    auto draft = prophet(expected.tokens(), 1);
    CHECK(speak(with(plain, draft, proposals), &counts) == expected);
    CHECK(counts.accepted == 0);
    CHECK(counts.rounds == plain.options.max_tokens - 2);
  }
}

TEST_CASE("max_tokens ends speech in the middle of a round") {
  auto longest = request();
  auto tokens = speak(longest).tokens();
  for (int most = 1; most <= 12; ++most) {
    CAPTURE(most);
    auto plain = longest;
    plain.options.max_tokens = most;
    auto expected = speak(plain);
    CHECK(int(expected.said.size()) == most);
    CHECK(speak(with(plain, prophet(tokens), 7)) == expected);
    CHECK(
        speak(with(plain, layer_draft(deep_t3(), {0, 1, 2, 3, 4, 5}), 7)) ==
        expected);
  }
}

TEST_CASE("a stop token ends speech in the middle of a round") {
  TinyT3 tiny;
  tiny.stops_at_once = true;
  auto model = tiny.load();
  auto plain = request();
  plain.voice = model->condition(tiny_voice());
  plain.options.temperature = 0.0f;
  plain.min_tokens = 6; // and the stop token comes as the seventh
  auto expected = speak(plain, nullptr, model);
  REQUIRE(expected.said.size() == 6);
  auto ahead = expected.tokens();
  // Whatever is proposed in the stop token's place, itself included.
  for (int last : {7, kStopSpeech}) {
    auto proposed = ahead;
    proposed.insert(proposed.end(), {last, 5, 5, 5});
    auto draft = [=](const SpeechRequest&) -> std::unique_ptr<Draft> {
      class Fixed : public Draft {
       public:
        explicit Fixed(std::vector<int> all) : all_(std::move(all)) {}
        std::vector<int> propose(const SpokenSoFar& spoken, int n) override {
          auto first = all_.begin() + (spoken.tokens.size() - 1);
          return {first, first + n};
        }

       private:
        std::vector<int> all_;
      };
      return std::make_unique<Fixed>(proposed);
    };
    for (int proposals : {1, 3}) {
      CAPTURE(last);
      CAPTURE(proposals);
      auto guessed = with(plain, draft, proposals);
      CHECK(speak(guessed, nullptr, model) == expected);
    }
  }
  auto whole = with(plain, layer_draft(model, {0, 1}), 7);
  CHECK(speak(whole, nullptr, model) == expected);
}

TEST_CASE("what one utterance taught about a draft serves the next") {
  auto plain = request();
  plain.options.max_tokens = 60;
  auto expected = speak(plain);
  auto guessed = plain;
  guessed.draft = prophet(expected.tokens(), 1);
  guessed.proposal_length = std::make_shared<ProposalLength>(std::nullopt);
  SpeculationCounts counts;
  CHECK(speak(guessed, &counts) == expected);
  CHECK(counts.rounds > 0); // nothing speaks against a draft at first
  for (int i = 0; i < 50; ++i) {
    SpeculationRound wrong{.asked = 1, .proposed = 1, .pass_seconds = 1.0};
    guessed.proposal_length->learn(wrong);
  }
  CHECK(speak(guessed, &counts) == expected);
  CHECK(counts.rounds == 0);
}

TEST_CASE("two utterances with drafts do not disturb each other") {
  auto a = request(), b = request();
  b.options.seed = 5;
  b.text_tokens = {40, 41, 42, 43, 44, 45};
  auto expected_a = speak(a).tokens(), expected_b = speak(b).tokens();
  auto draft = layer_draft(deep_t3(), {0, 3, 5});
  SpeechTokens first(deep_t3(), with(a, draft, 3));
  SpeechTokens second(deep_t3(), with(b, draft, 3));
  std::vector<int> tokens_a, tokens_b;
  for (int i = 0; i < a.options.max_tokens; ++i) {
    tokens_a.push_back(first.next().value());
    tokens_b.push_back(second.next().value());
  }
  CHECK(tokens_a == expected_a);
  CHECK(tokens_b == expected_b);
}

TEST_CASE("a draft is refused where it could change tokens") {
  EmulatedGpu as_gpu;
  auto model = TinyT3{}.load(mx::float32, std::nullopt, kernel_stream());
  SpeechRequest r;
  r.text_tokens = kTexts[0];
  r.voice = model->condition(tiny_voice());
  r.draft = ngram_draft({});
  CHECK(
      argument_error_of([&] { SpeechTokens(model, r); }) ==
      "a draft needs the CPU: on a GPU, positions that are checked together "
      "do not have the same bits as one by one, and tokens could change");
}

TEST_CASE("a number of proposals that makes no sense is refused") {
  auto error = [](int proposals) {
    auto r = with(request(), ngram_draft({}), proposals);
    return argument_error_of([&] { SpeechTokens(deep_t3(), r); });
  };
  CHECK(error(0) == "");
  CHECK(error(7) == "");
  CHECK(error(8) == "proposals must be between 0 and 7, not 8");
  CHECK(error(-1) == "proposals must be between 0 and 7, not -1");
}
