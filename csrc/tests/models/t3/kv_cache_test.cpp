#include "nightingale/models/t3/kv_cache.h"

#include <doctest/doctest.h>

#include "backends/cpu/thread_count.h"
#include "backends/gpu/emulated_gpu.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/error.h"
#include "nightingale/models/t3/speech_tokens.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::vector<int> kText{5, 6, 7, 8, 9, 10, 30, 31, 32};

// The tiny model with its caches kept so.
std::shared_ptr<const T3> keeping(
    const KvOptions& options,
    mx::Stream s = cpu_stream(),
    const std::string& settings = "") {
  TinyT3 tiny;
  tiny.settings = settings;
  auto model = std::make_shared<T3>(*tiny.load(mx::float32, std::nullopt, s));
  model->keep_cache(options);
  return model;
}

std::vector<int> speech(int count) {
  std::vector<int> tokens{kStartSpeech};
  for (int i = 1; i < count; ++i) {
    tokens.push_back(i * 37 % 6561);
  }
  return tokens;
}

Values logits(const T3& model, int count, int chunk) {
  return values(
      model.logits(kText, speech(count), model.condition(tiny_voice()), chunk));
}

SpeechRequest request_to(const T3& model, int tokens) {
  SpeechRequest r;
  r.text_tokens = kText;
  r.voice = model.condition(tiny_voice());
  r.min_tokens = tokens;
  r.options.max_tokens = tokens;
  return r;
}

std::vector<int> spoken(SpeechTokens& speech) {
  std::vector<int> tokens;
  while (auto token = speech.next()) {
    tokens.push_back(*token);
  }
  return tokens;
}

std::vector<int> speak(std::shared_ptr<const T3> model, int count) {
  SpeechTokens speech(model, request_to(*model, count));
  return spoken(speech);
}

} // namespace

TEST_CASE("logits over a quantized cache are near those of floats") {
  auto exact = logits(*keeping({}), 40, 1);
  auto error = [&](int bits, int chunk) {
    return relative_error(logits(*keeping({.bits = bits}), 40, chunk), exact);
  };
  for (int chunk : {0, 1, 5}) {
    CAPTURE(chunk);
    CHECK(error(8, chunk) > 0.0);
    CHECK(error(8, chunk) < 0.02);
    CHECK(error(4, chunk) < 0.3);
    CHECK(error(4, chunk) > error(8, chunk));
  }
}

TEST_CASE(
    "logits over a quantized cache do not depend on how many rows come at "
    "once") {
  // Of both guidance rows, 16 in all.
  for (int bits : {8, 4}) {
    auto model = keeping({.bits = bits});
    auto alone = logits(*model, 34, 1);
    for (int chunk : {2, 3, 5, 8}) {
      CAPTURE(chunk);
      CHECK(logits(*model, 34, chunk) == alone);
    }
  }
}

TEST_CASE("a quantized cache is smaller, and says so") {
  auto bytes = [](int bits) {
    auto model = keeping({.bits = bits});
    CHECK(model->kv().bits == bits);
    auto voice = model->condition(tiny_voice());
    auto cache = model->begin(voice, 2, 50);
    CHECK(cache.length == voice.length);
    CHECK(cache.capacity() == voice.length + 50);
    CHECK(
        cache.held_bytes() * cache.capacity() == cache.nbytes() * cache.length);
    return double(cache.nbytes());
  };
  CHECK(bytes(0) / bytes(8) > 3.5);
  CHECK(bytes(0) / bytes(4) > 6.0);
}

TEST_CASE("a trimmed quantized cache goes on as if it had never gone on") {
  for (int bits : {8, 4}) {
    auto model = keeping({.bits = bits});
    auto cache = model->begin(model->condition(tiny_voice()), 2, 40);
    mx::eval(model->forward(model->prompt(kText, cache, 2), cache, 1, nullptr));
    int length = cache.length;
    auto next = [&](int token) {
      auto x = model->inputs().speech(mx::array({token}), {0, cache.length}, 2);
      return floats(model->forward(x, cache, 1, nullptr));
    };
    auto expected = next(100);
    next(200);
    cache.trim(length);
    CHECK(same_bits(next(100), expected));
  }
}

TEST_CASE("a GPU speaks over a quantized cache, in as many launches") {
  const std::string heads = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  EmulatedGpu as_gpu;
  for (int bits : {8, 4}) {
    auto model = keeping({.bits = bits}, kernel_stream(), heads);
    auto request = request_to(*model, 12);
    request.analyser = true;
    SpeechTokens tokens(model, request);
    tokens.next();
    tokens.next();
    long before = gpu::kernel_launches();
    tokens.next();
    CHECK(gpu::kernel_launches() - before == 5 * TinyT3{}.layers + 3);
    CHECK(spoken(tokens).size() == 9);
    auto exact = logits(*keeping({}, kernel_stream()), 8, 1);
    CHECK(
        relative_error(logits(*model, 8, 1), exact) < (bits == 8 ? 0.02 : 0.3));
  }
}

TEST_CASE("a whole budget speaks the same tokens, a small one as long") {
  auto plain = speak(keeping({}), 120);
  CHECK(speak(keeping({.budget = 1.0f}), 120) == plain);
  auto half = speak(keeping({.budget = 0.5f}), 120);
  CHECK(half.size() == plain.size());
  CHECK(std::equal(half.begin(), half.begin() + 16, plain.begin()));
  CHECK(speak(keeping({.budget = 0.5f}), 120) == half);
  ThreadCount one(1);
  CHECK(speak(keeping({.budget = 0.5f}), 120) == half);
}

TEST_CASE("a budget is what is held of the speech") {
  for (int bits : {0, 8}) {
    auto held = [&](float budget) {
      auto model = keeping({.bits = bits, .budget = budget});
      SpeechTokens speech(model, request_to(*model, 161));
      spoken(speech);
      const auto& cache = speech.cache();
      size_t position = cache.nbytes() / cache.capacity();
      int prompt = request_to(*model, 1).voice.length + kText.size() + 4;
      return double(cache.held_bytes()) / position - prompt;
    };
    CHECK(held(0.0f) == 160.0);
    CHECK(held(0.5f) == doctest::Approx(80.0).epsilon(0.02));
    CHECK(held(0.25f) == doctest::Approx(40.0).epsilon(0.04));
    CHECK(held(0.02f) == doctest::Approx(8.0));
  }
}

TEST_CASE("the analyser sees the whole text over a small cache") {
  const std::string heads = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  auto model = keeping({.budget = 0.02f}, cpu_stream(), heads);
  auto request = request_to(*model, 60);
  request.analyser = true;
  SpeechTokens speech(model, request);
  spoken(speech);
  CHECK(speech.text_position() >= 0);
  CHECK(speech.text_position() < int(kText.size()) + 2);
}

TEST_CASE("a cache with a budget cannot be rewound") {
  auto model = keeping({.budget = 0.5f});
  auto cache = model->begin(model->condition(tiny_voice()), 2, 40);
  mx::eval(model->forward(model->prompt(kText, cache, 2), cache, 1, nullptr));
  cache.trim(cache.length);
  CHECK_THROWS_AS(cache.trim(cache.length - 1), Error);
}

TEST_CASE("caches that cannot be had are refused") {
  CHECK_THROWS_WITH_AS(
      keeping({.bits = 5}), "a KV cache takes 8 or 4 bits, not 5", Error);
  CHECK_THROWS_AS(keeping({.budget = -0.5f}), std::invalid_argument);
  CHECK_THROWS_AS(keeping({.budget = 1.5f}), std::invalid_argument);
  CHECK_THROWS_AS(keeping({.budget = NAN}), std::invalid_argument);
  EmulatedGpu as_gpu;
  CHECK_THROWS_AS(keeping({.budget = 0.5f}, kernel_stream()), Error);
}
