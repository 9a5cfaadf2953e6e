// Steps of many utterances: each says what it says alone.

#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "nightingale/ops/machine.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

using Speeches = std::vector<std::unique_ptr<SpeechTokens>>;

// A token and where in the text it was spoken.
using Said = std::vector<std::pair<int, int>>;

std::shared_ptr<const T3> aligned_t3(
    std::optional<mx::Dtype> dtype = mx::float32,
    std::optional<int> bits = std::nullopt) {
  TinyT3 tiny;
  tiny.text_positions = 300;
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  return tiny.load(dtype, bits);
}

// Utterances of all kinds: with and without guidance and analyser, some of
// which begin with a long prompt.
SpeechRequest request(const T3& model, int number) {
  SpeechRequest r;
  r.text_tokens.assign(number % 4 == 3 ? 150 : 6 + number, 5);
  for (int i = 0; i <= number; ++i) {
    r.text_tokens[i] = 30 + 7 * number + i;
  }
  r.voice = model.condition(tiny_voice());
  r.analyser = number % 2 == 0;
  r.sentence = number;
  r.options.cfg_weight = number % 3 == 0 ? 0.0f : 0.5f;
  r.options.max_tokens = 4 + number;
  return r;
}

Said spoken_alone(std::shared_ptr<const T3> model, const SpeechRequest& r) {
  SpeechTokens speech(model, r);
  Said said;
  while (auto token = speech.next()) {
    said.emplace_back(*token, speech.text_position());
  }
  return said;
}

std::vector<SpeechTokens*> pointers(const Speeches& speeches) {
  std::vector<SpeechTokens*> all;
  for (const auto& each : speeches) {
    all.push_back(each.get());
  }
  return all;
}

void read_queued(SpeechTokens& speech, Said& said) {
  while (auto token = speech.take_queued()) {
    said.emplace_back(*token, speech.text_position());
  }
}

// All of them to their ends, one more of them in every step.
std::vector<Said> spoken_in_steps(const Speeches& speeches) {
  std::vector<Said> said(speeches.size());
  auto all = pointers(speeches);
  for (size_t running = 1; running < 200; ++running) {
    size_t count = std::min(running, all.size());
    CHECK(queue_steps(std::span(all).first(count)).empty());
    for (size_t i = 0; i < count; ++i) {
      read_queued(*all[i], said[i]);
    }
    if (std::ranges::all_of(
            all, [](auto* each) { return each->has_ended(); })) {
      return said;
    }
  }
  FAIL("an utterance does not end");
  return {};
}

void check_steps(
    std::shared_ptr<const T3> model,
    const std::vector<SpeechRequest>& requests) {
  Speeches speeches;
  for (const auto& r : requests) {
    speeches.push_back(std::make_unique<SpeechTokens>(model, r));
  }
  auto said = spoken_in_steps(speeches);
  for (size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    CHECK(said[i].size() > 1);
    auto alone = spoken_alone(model, requests[i]);
    CHECK(said[i].size() == alone.size());
    auto [first, other] = std::ranges::mismatch(said[i], alone);
    CHECK(first - said[i].begin() == std::ssize(alone)); // where they differ
  }
}

std::vector<SpeechRequest> requests_of(const T3& model, int count) {
  std::vector<SpeechRequest> all;
  for (int number = 0; number < count; ++number) {
    all.push_back(request(model, number));
  }
  return all;
}

struct FailingDraft : Draft {
  std::vector<int> propose(const SpokenSoFar&, int) override {
    throw Error("no opinion");
  }
};

// Reads the prompt of `speech` and gives the number of its parts.
int read_prompt(SpeechTokens& speech) {
  SpeechTokens* one[] = {&speech};
  int parts = 0;
  for (; speech.in_prompt(); ++parts) {
    CHECK(speech.queued() == 0);
    CHECK(queue_steps(one).empty());
  }
  speech.take_queued();
  return parts;
}

// What the cache holds after the prompt was read at once.
KvCache read_at_once(const T3& model, const SpeechRequest& r) {
  int rows = r.rows();
  auto x = model.prompt(r.text_tokens, r.voice, rows);
  auto start = model.inputs().speech(
      mx::array({kStartSpeech}), {0, r.voice.length + x.shape(1)}, rows);
  auto cache = model.begin(r.voice, rows, x.shape(1) + 1);
  auto whole = mx::concatenate({x, start}, 1, cpu_stream());
  mx::eval(model.forward(whole, cache, 1, nullptr));
  return cache;
}

mx::array held_values(const KvCache& cache, int layer) {
  const auto& values = cache.layers[layer].values;
  mx::Shape end = values.shape();
  end[2] = cache.length;
  auto s = cpu_stream();
  return mx::contiguous(mx::slice(values, {0, 0, 0, 0}, end, s), false, s);
}

void check_parts(std::shared_ptr<const T3> model, int text, int rows) {
  CAPTURE(text);
  CAPTURE(rows);
  auto r = request(*model, 0);
  r.text_tokens.assign(text, 7);
  r.options.cfg_weight = rows == 2 ? 0.5f : 0.0f;
  SpeechTokens speech(model, r);
  int positions = text + 4; // start and stop, two starts of speech
  // 64 at a time, and up to 16 more in the last part
  CHECK(read_prompt(speech) == 1 + (positions - 17) / 64);
  auto whole = read_at_once(*model, r);
  CHECK(whole.length == speech.cache().length);
  for (int layer = 0; layer < std::ssize(whole.layers); ++layer) {
    CHECK(same_bits(
        held_values(whole, layer), held_values(speech.cache(), layer)));
  }
}

} // namespace

TEST_CASE("utterances that begin in turn say in steps what they say alone") {
  for (mx::Dtype dtype : kFloatTypes) {
    CAPTURE(dtype);
    auto model = aligned_t3(dtype);
    check_steps(model, requests_of(*model, 14)); // more than one pass
  }
  for (int bits : {8, 4}) {
    CAPTURE(bits);
    auto model = aligned_t3(mx::float32, bits);
    check_steps(model, requests_of(*model, 14));
  }
}

TEST_CASE("drafts, budgets and quantized caches go into steps as well") {
  auto model = aligned_t3(mx::float32, 8);
  auto drafted = requests_of(*model, 5);
  drafted[1].draft = ngram_draft({});
  drafted[3].draft = layer_draft(model, {1});
  check_steps(model, drafted);
  for (KvOptions kv : {KvOptions{.budget = 0.3f}, KvOptions{.bits = 8}}) {
    CAPTURE(kv.bits);
    auto other = std::make_shared<T3>(*model);
    other->keep_cache(kv);
    auto requests = requests_of(*other, 5);
    requests[2].options.max_tokens = 150; // some positions are dropped
    check_steps(other, requests);
  }
}

TEST_CASE("utterances of two models are stepped in one call") {
  auto floats = aligned_t3(), integers = aligned_t3(mx::float32, 8);
  Speeches speeches;
  std::vector<Said> expected;
  for (int number = 0; number < 6; ++number) {
    auto model = number % 2 ? floats : integers;
    auto r = request(*model, number);
    expected.push_back(spoken_alone(model, r));
    speeches.push_back(std::make_unique<SpeechTokens>(model, r));
  }
  CHECK(spoken_in_steps(speeches) == expected);
}

TEST_CASE("an utterance that fails is named and disturbs no other") {
  auto model = aligned_t3(mx::float32, 8);
  auto requests = requests_of(*model, 3);
  Speeches speeches;
  for (const auto& r : requests) {
    speeches.push_back(std::make_unique<SpeechTokens>(model, r));
  }
  auto failing = request(*model, 1);
  failing.options.max_tokens = 50;
  failing.proposals = 3;
  failing.draft = [](const auto&) { return std::make_unique<FailingDraft>(); };
  SpeechTokens drafted(model, failing);
  // The caches of a voice that does not fit fail when they are written.
  auto strange = request(*model, 2);
  auto& layer = strange.voice.layers[1];
  layer.values = mx::astype(layer.values, mx::float16, cpu_stream());
  SpeechTokens broken(model, strange);

  auto all = pointers(speeches);
  all.insert(all.begin() + 1, {&drafted, &broken});
  std::vector<Said> said(3);
  std::vector<SpeechTokens*> named;
  for (int step = 0; step < 20; ++step) {
    for (const auto& [utterance, cause] : queue_steps(all)) {
      named.push_back(utterance);
      std::erase(all, utterance);
      CHECK_THROWS_AS(std::rethrow_exception(cause), Error);
    }
    for (size_t i = 0; i < 3; ++i) {
      read_queued(*speeches[i], said[i]);
    }
  }
  CHECK(named == std::vector<SpeechTokens*>{&broken, &drafted});
  for (size_t i = 0; i < 3; ++i) {
    CHECK(said[i] == spoken_alone(model, requests[i]));
  }
}

TEST_CASE("an op that fails in a shared pass ends its own utterance only") {
  auto model = aligned_t3();
  auto requests = requests_of(*model, 4);
  for (auto& r : requests) {
    r.options.max_tokens = 12;
  }
  Speeches speeches;
  std::vector<Said> said(4);
  for (const auto& r : requests) {
    speeches.push_back(std::make_unique<SpeechTokens>(model, r));
  }
  auto all = pointers(speeches);
  std::vector<SpeechTokens*> named;
  uint64_t known = 0;
  auto failures = ops::failed_ops();
  for (int step = 0; step < 20; ++step) {
    if (step == 5) { // in a type that attention cannot write
      auto& layer = const_cast<KvCache&>(all[1]->cache()).layers[1];
      layer.keys = mx::astype(layer.keys, mx::int32, cpu_stream());
      layer.values = mx::astype(layer.values, mx::int32, cpu_stream());
    }
    for (const auto& [utterance, cause] : queue_steps(all, &known)) {
      named.push_back(utterance);
      std::erase(all, utterance);
      CHECK_THROWS_AS(std::rethrow_exception(cause), Error);
    }
    for (size_t i = 0; i < 4; ++i) {
      read_queued(*speeches[i], said[i]);
    }
  }
  CHECK(named == std::vector<SpeechTokens*>{speeches[1].get()});
  CHECK(known >= 2); // in the shared pass, and alone
  CHECK(ops::failed_ops() == failures + known);
  for (size_t i = 0; i < 4; ++i) {
    if (i != 1) {
      CHECK(said[i] == spoken_alone(model, requests[i]));
    }
  }
}

TEST_CASE("a prompt that is read in parts has the bits of a whole one") {
  for (auto model :
       {aligned_t3(mx::float32),
        aligned_t3(mx::float16),
        aligned_t3(mx::float32, 8)}) {
    for (int text : {60, 75, 110, 190}) {
      check_parts(model, text, 1);
      check_parts(model, text, 2);
    }
  }
}

TEST_CASE("on a GPU every utterance makes its steps alone, without waiting") {
  EmulatedGpu as_gpu;
  auto model = TinyT3{}.load(mx::float32, std::nullopt, kernel_stream());
  std::vector<SpeechRequest> requests;
  for (int number = 0; number < 2; ++number) {
    SpeechRequest r;
    r.text_tokens = {30 + number, 31, 32, 33, 34, 35, 36};
    r.voice = model->condition(tiny_voice());
    r.sentence = number;
    r.options.max_tokens = 3 + number;
    requests.push_back(r);
  }
  check_steps(model, requests);
}
