#include "nightingale/models/t3/draft.h"

#include <doctest/doctest.h>

#include "nightingale/error.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

ops::Sampler sampler(float temperature, uint64_t seed = 0) {
  ops::TokenRules rules;
  rules.options.seed = seed;
  rules.options.temperature = temperature;
  rules.options.repetition_penalty = 1.0f;
  rules.stop_token = 9;
  return ops::Sampler::start(rules, 10, 0, cpu_stream());
}

// What the n-gram draft makes of `spoken` after `prompt`.
std::vector<int>
proposals(std::vector<int> prompt, std::vector<int> spoken, int count) {
  auto draft = ngram_draft(std::move(prompt))({});
  KvCache cache;
  return draft->propose({spoken, sampler(0.0f), cache}, count);
}

std::string error_of_draft(TinyT3 tiny) {
  try {
    check_draft(*tiny_t3(), *tiny.load());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

} // namespace

TEST_CASE("n-grams propose what followed the last tokens before") {
  CHECK(proposals({}, {1, 2, 3, 4, 1, 2}, 2) == std::vector<int>{3, 4});
  CHECK(proposals({}, {1, 2, 3, 4, 1, 2}, 9) == std::vector<int>{3, 4, 1, 2});
  CHECK(proposals({}, {1, 2, 3, 4, 5, 2}, 2).empty());
  CHECK(proposals({}, {1}, 2).empty());
  CHECK(proposals({}, {7, 7, 7, 7}, 3) == std::vector<int>{7});
}

TEST_CASE("n-grams prefer the longest run and then the latest one") {
  // After 1, 2, 3 came a 4; after 2, 3 alone, later, an 8.
  CHECK(
      proposals({}, {1, 2, 3, 4, 0, 2, 3, 8, 1, 2, 3}, 1) ==
      std::vector<int>{4});
  CHECK(
      proposals({}, {2, 3, 4, 0, 2, 3, 8, 1, 2, 3}, 1) == std::vector<int>{8});
}

TEST_CASE("n-grams are found in the voice's prompt, and as tokens come") {
  CHECK(proposals({5, 6, 7, 8}, {0, 5, 6}, 2) == std::vector<int>{7, 8});
  auto draft = ngram_draft({5, 6, 7})({});
  KvCache cache;
  auto state = sampler(0.0f);
  std::vector<int> spoken{0, 1, 2};
  CHECK(draft->propose({spoken, state, cache}, 2).empty());
  spoken.insert(spoken.end(), {3, 1, 2});
  CHECK(draft->propose({spoken, state, cache}, 2) == std::vector<int>{3, 1});
}

TEST_CASE("a fork chooses as the sampler would and leaves it alone") {
  auto s = cpu_stream();
  auto logits = noise_array({2, 10}, 3);
  for (float temperature : {0.0f, 0.8f}) {
    for (uint64_t seed : {0, 1, 2, 3}) {
      auto original = sampler(temperature, seed);
      auto proposed = propose_tokens(
          original, 4, [&](const auto&, int) { return logits; }, s);
      std::vector<int> chosen;
      auto last = sampler(temperature, seed);
      while (chosen.size() < 4) {
        last = ops::choose_token(logits, {}, std::move(last), s);
        chosen.push_back(last.token.item<int>());
      }
      chosen.erase(std::ranges::find(chosen, 9), chosen.end());
      CHECK(proposed == chosen);
      CHECK(original.position == 0);
      auto seen = floats(original.seen);
      CHECK(seen == floats(sampler(0.0f).seen));
    }
  }
}

TEST_CASE("a draft by layers keeps both ends and every other between") {
  CHECK(draft_layers(2) == std::vector<int>{0, 1});
  CHECK(draft_layers(8) == std::vector<int>{0, 1, 2, 4, 6, 7});
  CHECK(draft_layers(30).size() == 17);
}

TEST_CASE("a draft by layers that are not there is refused") {
  auto error = [](std::vector<int> kept) {
    return argument_error_of([&] { layer_draft(tiny_t3(), kept); });
  };
  CHECK(error({0}) == "");
  CHECK(error({1, 0}) == "");
  CHECK(
      error({0, 2}) ==
      "a draft cannot keep layer 2; this model has layers 0 to 1");
  CHECK(
      error({-1}) ==
      "a draft cannot keep layer -1; this model has layers 0 to 1");
  CHECK(error({}) == "a draft must keep one layer at least, and none twice");
  CHECK(
      error({1, 1}) == "a draft must keep one layer at least, and none twice");
}

TEST_CASE("a draft must have the model's tokens, places and voices") {
  const std::string made = ": it must have been made for this model";
  TinyT3 tiny;
  tiny.layers = 1;
  tiny.ffn = 64;
  CHECK(error_of_draft(tiny) == "");
  auto changed = tiny;
  changed.text_vocabulary = 261;
  CHECK(
      error_of_draft(changed) ==
      "the draft has a text vocabulary of 261, the model 260" + made);
  changed = tiny;
  changed.speech_vocabulary = 6563;
  CHECK(
      error_of_draft(changed) ==
      "the draft has a speech vocabulary of 6563, the model 6565" + made);
  changed = tiny;
  changed.speaker_size = 8;
  CHECK(
      error_of_draft(changed) ==
      "the draft has a speaker embedding of 8, the model 16" + made);
  changed = tiny;
  changed.text_positions = 39;
  CHECK(
      error_of_draft(changed) ==
      "the draft has text positions: 39, the model 40" + made);
  changed = tiny;
  changed.speech_positions = 2000;
  CHECK(error_of_draft(changed) == "");
  changed.speech_positions = 1000;
  CHECK(
      error_of_draft(changed) ==
      "the draft has speech positions: 1000, the model 1100" + made);
}
