// Heads that are watched while tokens are chosen give what one more pass over
// the tokens gives.

#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::vector<AlignmentHead> kHeads{{0, 1}, {1, 0}, {1, 1}};

// Quantized models round activations to 16 bits.
constexpr double kFloatBound = 1e-5, kIntegerBound = 3e-4;

SpeechRequest request(const T3& model, int number = 0) {
  SpeechRequest r;
  r.text_tokens = {5, 6, 7, 8, 9, 10, 30 + number};
  r.voice = model.condition(tiny_voice());
  r.sentence = number;
  r.options.max_tokens = 12 + number;
  r.watched_heads = kHeads;
  return r;
}

// What a pass over the text and these tokens gives to the last queries, each of
// which chose one of the tokens.
mx::array by_one_more_pass(
    const T3& model,
    const SpeechRequest& r,
    const std::vector<int>& tokens) {
  std::vector<int> queries{kStartSpeech};
  queries.insert(queries.end(), tokens.begin(), tokens.end() - 1);
  auto all =
      model.text_weights(r.text_tokens, queries, r.voice, r.watched_heads);
  int rows = all.shape(1), count = tokens.size();
  return mx::slice(
      all,
      {0, rows - count, 0},
      {all.shape(0), rows, all.shape(2)},
      model.stream());
}

void check_weights(
    const T3& model,
    const SpeechRequest& r,
    const std::vector<int>& tokens,
    SpeechTokens& speech,
    double bound) {
  auto found = speech.text_weights();
  auto expected = by_one_more_pass(model, r, tokens);
  CHECK(found.shape() == expected.shape());
  CHECK(relative_error(found, values(expected)) < bound);
}

void check_alone(
    std::shared_ptr<const T3> model,
    const SpeechRequest& r,
    double bound) {
  SpeechTokens speech(model, r);
  CHECK(speech.text_weights().shape(1) == 0);
  std::vector<int> tokens;
  while (auto token = speech.next()) {
    tokens.push_back(*token);
    if (tokens.size() == 5 || tokens.size() == 6) { // chunks of a stream
      check_weights(*model, r, tokens, speech, bound);
    }
  }
  REQUIRE(tokens.size() > 6);
  check_weights(*model, r, tokens, speech, bound);
}

std::vector<int> rest_of(SpeechTokens& speech) {
  std::vector<int> tokens;
  while (auto token = speech.next()) {
    tokens.push_back(*token);
  }
  return tokens;
}

} // namespace

TEST_CASE("watched heads on the CPU, with floats and quantized weights") {
  for (auto tiny : {TinyT3{}, tiny_gpt2()}) {
    auto floats = tiny.load(mx::float32);
    check_alone(floats, request(*floats), kFloatBound);
    auto integers = tiny.load(mx::float32, 8);
    check_alone(integers, request(*integers), kIntegerBound);
    auto without_guidance = request(*integers);
    without_guidance.options.cfg_weight = 0.0f;
    check_alone(integers, without_guidance, kIntegerBound);
  }
}

TEST_CASE("watched heads do not change the tokens") {
  auto model = tiny_t3();
  auto r = request(*model);
  SpeechTokens watched(model, r);
  r.watched_heads.clear();
  SpeechTokens unwatched(model, r);
  CHECK(rest_of(watched) == rest_of(unwatched));
  CHECK(unwatched.text_weights().shape(0) == 0);
}

TEST_CASE("with a draft the weights are those of the accepted tokens") {
  for (std::optional<int> bits : {std::optional<int>(), {8}}) {
    auto model = TinyT3{}.load(mx::float32, bits);
    auto r = request(*model);
    r.options.max_tokens = 40;
    r.draft = layer_draft(model, {1}); // which is wrong at times
    r.proposals = 4;
    SpeechTokens speech(model, r);
    auto tokens = rest_of(speech);
    const auto& counts = speech.speculation();
    CHECK(counts.proposed > counts.accepted);
    check_weights(
        *model, r, tokens, speech, bits ? kIntegerBound : kFloatBound);
  }
}

TEST_CASE("utterances that are stepped together have weights of their own") {
  auto model = TinyT3{}.load(mx::float32, 8);
  std::vector<std::unique_ptr<SpeechTokens>> speeches;
  std::vector<SpeechTokens*> all;
  for (int number = 0; number < 4; ++number) {
    auto r = request(*model, number);
    if (number == 2) {
      r.watched_heads.clear();
    }
    speeches.push_back(std::make_unique<SpeechTokens>(model, r));
    all.push_back(speeches.back().get());
  }
  for (int step = 0; step < 20; ++step) {
    CHECK(queue_steps(all).empty());
  }
  for (int number : {0, 1, 3}) {
    auto r = request(*model, number);
    auto tokens = rest_of(*all[number]);
    CHECK(std::ssize(tokens) == r.options.max_tokens);
    check_weights(*model, r, tokens, *all[number], kIntegerBound);
  }
}

TEST_CASE("watched heads on a GPU, whose steps are replayed") {
  EmulatedGpu as_gpu;
  auto model = TinyT3{}.load(mx::float32, std::nullopt, kernel_stream());
  auto r = request(*model);
  r.watched_heads = {{0, 1}, {1, 0}};
  check_alone(model, r, 1e-4);
}

TEST_CASE("watched heads that the model has not are refused") {
  auto model = tiny_t3();
  auto r = request(*model);
  r.watched_heads = {{0, 2}};
  CHECK(argument_error_of([&] {
          SpeechTokens(model, r);
        }) == "the model has no head [0, 2]");
  TinyT3 tiny;
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  auto aligned = tiny.load();
  r.watched_heads = kHeads;
  r.analyser = true;
  CHECK(argument_error_of([&] {
          SpeechTokens(aligned, r);
        }) == "the analyser watches heads of its own: leave watched_heads out");
}
