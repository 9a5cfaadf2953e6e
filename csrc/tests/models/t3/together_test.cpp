// Utterances that are spoken together are those that are spoken alone.

#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/ops/machine.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

using Speeches = std::vector<std::shared_ptr<SpeechTokens>>;

// A token and where in the text it was spoken.
using Said = std::pair<int, int>;

std::shared_ptr<const T3> aligned_t3(mx::Dtype dtype = mx::float32) {
  TinyT3 tiny;
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  return tiny.load(dtype);
}

SpeechRequest request(const T3& model, int number, bool analyser) {
  SpeechRequest r;
  r.text_tokens.assign(6 + number, 5);
  for (int i = 0; i <= number; ++i) {
    r.text_tokens[i] = 30 + 7 * number + i;
  }
  r.voice = model.condition(tiny_voice());
  r.analyser = analyser;
  r.sentence = number;
  r.options.max_tokens = 5 + 3 * number;
  return r;
}

std::vector<Said> rest_of(SpeechTokens& speech, const Speeches& ahead = {}) {
  std::vector<Said> said;
  while (auto token = speech.next(ahead)) {
    said.emplace_back(*token, speech.text_position());
  }
  return said;
}

// One after the other, each with those that follow it.
std::vector<std::vector<Said>> spoken_ahead(Speeches speeches) {
  std::vector<std::vector<Said>> all;
  while (!speeches.empty()) {
    auto first = speeches.front();
    speeches.erase(speeches.begin());
    all.push_back(rest_of(*first, speeches));
  }
  return all;
}

} // namespace

TEST_CASE("sentences spoken together say what they say alone") {
  for (mx::Dtype dtype : kFloatTypes) {
    auto model = aligned_t3(dtype);
    for (bool analyser : {false, true}) {
      for (int count : {3, 11}) { // of which eight fit at a time
        CAPTURE(analyser);
        CAPTURE(count);
        std::vector<std::vector<Said>> expected;
        Speeches together;
        for (int number = 0; number < count; ++number) {
          auto r = request(*model, number, analyser);
          SpeechTokens alone(model, r);
          expected.push_back(rest_of(alone));
          together.push_back(std::make_shared<SpeechTokens>(model, r));
        }
        CHECK(spoken_ahead(together) == expected);
      }
    }
  }
}

TEST_CASE("rows without guidance are spoken beside rows with it") {
  auto model = aligned_t3();
  std::vector<std::vector<Said>> expected;
  Speeches together;
  for (int number = 0; number < 4; ++number) {
    auto r = request(*model, number, true);
    r.options.cfg_weight = number % 2 ? 0.0f : 0.5f;
    SpeechTokens alone(model, r);
    expected.push_back(rest_of(alone));
    together.push_back(std::make_shared<SpeechTokens>(model, r));
  }
  CHECK(spoken_ahead(together) == expected);
}

TEST_CASE("what was spoken ahead is there at once, stop token and all") {
  TinyT3 tiny;
  tiny.stops_at_once = true;
  auto stopping = tiny.load();
  auto r = request(*stopping, 3, false);
  r.options.temperature = 0.0f;
  r.min_tokens = 2;
  auto brief = std::make_shared<SpeechTokens>(stopping, r);
  r.min_tokens = 14;
  auto lasting = std::make_shared<SpeechTokens>(stopping, r);
  CHECK(rest_of(*lasting, {brief}).size() == 14);
  CHECK(rest_of(*brief).size() == 2);
}

TEST_CASE("the ones ahead may be dropped or spoken alone at any time") {
  auto model = aligned_t3();
  auto first = request(*model, 4, true), second = request(*model, 2, true);
  SpeechTokens alone_first(model, first), alone_second(model, second);
  auto expected_first = rest_of(alone_first);
  auto expected_second = rest_of(alone_second);
  auto a = std::make_shared<SpeechTokens>(model, first);
  auto b = std::make_shared<SpeechTokens>(model, second);
  std::vector<Said> said;
  for (int i = 0; i < 5; ++i) {
    int token = a->next({b}).value();
    said.emplace_back(token, a->text_position());
  }
  CHECK(rest_of(*b) == expected_second);
  b.reset();
  auto rest = rest_of(*a);
  said.insert(said.end(), rest.begin(), rest.end());
  CHECK(said == expected_first);
}

TEST_CASE("utterances that cannot be spoken together are refused") {
  const std::string message =
      "only utterances of one model, without drafts and with whole caches, are "
      "spoken together";
  auto model = aligned_t3();
  auto r = request(*model, 0, false);
  SpeechTokens first(model, r);
  auto stranger =
      std::make_shared<SpeechTokens>(tiny_t3(), request(*tiny_t3(), 1, false));
  CHECK(argument_error_of([&] { first.next({stranger}); }) == message);
  r.draft = ngram_draft({});
  auto drafted = std::make_shared<SpeechTokens>(model, r);
  CHECK(argument_error_of([&] { first.next({drafted}); }) == message);

  auto forgetful = std::make_shared<T3>(*model);
  forgetful->keep_cache({.budget = 0.5f});
  SpeechTokens short_of(forgetful, request(*forgetful, 0, false));
  auto likewise =
      std::make_shared<SpeechTokens>(forgetful, request(*forgetful, 1, false));
  CHECK(argument_error_of([&] { short_of.next({likewise}); }) == message);
  auto with_draft = request(*forgetful, 0, false);
  with_draft.draft = ngram_draft({});
  CHECK(
      argument_error_of([&] { SpeechTokens(forgetful, with_draft); }) ==
      "a draft needs a whole KV cache: one with a budget cannot be rewound");
}

namespace {

struct OnGpu {
  TinyT3 tiny;
  mx::Dtype dtype;
  std::optional<int> bits = std::nullopt;
  int kv_bits = 0;
  bool analyser = false;
  float cfg_weight = 0.5f;

  // Each of `count` utterances alone, and all together.
  void check(int count) const {
    CAPTURE(count);
    EmulatedGpu as_gpu;
    auto loaded =
        std::make_shared<T3>(*tiny.load(dtype, bits, kernel_stream()));
    loaded->keep_cache({.bits = kv_bits});
    std::shared_ptr<const T3> model = loaded;
    std::vector<std::vector<Said>> expected;
    Speeches together;
    for (int number = 0; number < count; ++number) {
      auto r = request(*model, number, analyser);
      r.options.max_tokens = 3 + number;
      r.options.cfg_weight = cfg_weight;
      SpeechTokens alone(model, r);
      expected.push_back(rest_of(alone));
      together.push_back(std::make_shared<SpeechTokens>(model, r));
      REQUIRE(together.back()->shares_passes());
    }
    auto launches = ops::kernel_launches();
    CHECK(spoken_ahead(together) == expected);
    CHECK(ops::kernel_launches() > launches);
  }
};

TinyT3 aligned() {
  TinyT3 tiny;
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  return tiny;
}

} // namespace

TEST_CASE("on a GPU, too, sentences together say what they say alone") {
  OnGpu{aligned(), mx::float32, std::nullopt, 0, true}.check(2);
  OnGpu{aligned(), mx::bfloat16, std::nullopt, 0, true}.check(3);
  OnGpu{TinyT3{}, mx::float16}.check(6);
  OnGpu{aligned(), mx::float16, 8, 8, true}.check(3);
  OnGpu{TinyT3{}, mx::float16, 4, 4, false, 0.0f}.check(2);
  OnGpu{tiny_gpt2(), mx::float16, std::nullopt, 0, false, 0.0f}.check(3);
}

TEST_CASE("on a GPU, utterances that launch other kernels take turns") {
  EmulatedGpu as_gpu;
  auto model = aligned().load(mx::float32, std::nullopt, kernel_stream());
  std::vector<std::vector<Said>> expected;
  Speeches together;
  for (int number = 0; number < 4; ++number) {
    auto r = request(*model, number, number < 2);
    r.options.max_tokens = 3 + number;
    r.options.cfg_weight = number % 2 ? 0.0f : 0.5f;
    SpeechTokens alone(model, r);
    expected.push_back(rest_of(alone));
    together.push_back(std::make_shared<SpeechTokens>(model, r));
  }
  CHECK(spoken_ahead(together) == expected);
}

TEST_CASE("a sentence may go on alone after it was spoken in company") {
  TinyT3 tiny;
  for (std::optional<int> bits : {std::optional<int>(), {8}}) {
    CAPTURE(bits.value_or(0));
    auto model = tiny.load(mx::float32, bits);
    auto first = request(*model, 3, false), second = request(*model, 4, false);
    auto begun = std::make_shared<SpeechTokens>(model, first);
    auto beside = std::make_shared<SpeechTokens>(model, second);
    std::vector<Said> said;
    for (bool alone : {true, true, false, false, true, false, true}) {
      auto token = begun->next(alone ? Speeches{} : Speeches{beside});
      REQUIRE(token);
      said.emplace_back(*token, begun->text_position());
    }
    for (Said each : rest_of(*begun, {beside})) {
      said.push_back(each);
    }
    SpeechTokens other(model, first);
    CHECK(said == rest_of(other));
    SpeechTokens company(model, second);
    CHECK(rest_of(*beside) == rest_of(company));
  }
}
