#include "nightingale/models/t3/speech_tokens.h"

#include <doctest/doctest.h>

#include "mlx/memory.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

SpeechRequest request() {
  SpeechRequest r;
  r.text_tokens = {5, 6, 7, 8, 9, 10, 30};
  r.voice = tiny_condition();
  r.options.max_tokens = 20;
  return r;
}

std::vector<int> speak(
    const SpeechRequest& request,
    std::shared_ptr<const T3> model = tiny_t3()) {
  SpeechTokens speech(std::move(model), request);
  std::vector<int> tokens;
  while (auto token = speech.next()) {
    tokens.push_back(*token);
  }
  return tokens;
}

// The most likely next token after every prefix of `spoken`, by teacher
// forcing.
std::vector<int> argmaxes(
    const SpeechRequest& request,
    const std::vector<int>& spoken) {
  std::vector<int> output{kStartSpeech};
  output.insert(output.end(), spoken.begin(), spoken.end() - 1);
  auto logits =
      tiny_t3()->logits(request.text_tokens, output, request.voice, 1);
  auto x = floats(logits);
  size_t vocabulary = logits.shape(2);
  const float* conditioned = x.data();
  const float* free = x.data() + output.size() * vocabulary;
  std::vector<int> best;
  for (size_t i = 0; i < output.size() * vocabulary; i += vocabulary) {
    std::vector<float> guided(vocabulary);
    for (size_t j = 0; j < vocabulary; ++j) {
      float difference = conditioned[i + j] - free[i + j];
      guided[j] = conditioned[i + j] + request.options.cfg_weight * difference;
    }
    best.push_back(std::ranges::max_element(guided) - guided.begin());
  }
  return best;
}

} // namespace

TEST_CASE("the same seed speaks the same tokens, another seed others") {
  auto first = request();
  first.options.seed = 7;
  auto tokens = speak(first);
  CHECK(tokens.size() == 20);
  CHECK(speak(first) == tokens);
  auto second = first;
  second.options.seed = 8;
  CHECK(speak(second) != tokens);
  second = first;
  second.sentence = 1;
  CHECK(speak(second) != tokens);
}

TEST_CASE("a longer request begins like a shorter one") {
  auto shorter = request(), longer = request();
  shorter.options.max_tokens = 9;
  auto a = speak(shorter), b = speak(longer);
  b.resize(9);
  CHECK(a == b);
}

TEST_CASE("temperature 0 speaks the most likely token of the guided logits") {
  auto greedy = request();
  greedy.options.temperature = 0.0f;
  greedy.options.repetition_penalty = 1.0f;
  auto tokens = speak(greedy);
  CHECK(tokens.size() == 20);
  CHECK(argmaxes(greedy, tokens) == tokens);
  greedy.options.seed = 99;
  CHECK(speak(greedy) == tokens);
}

TEST_CASE("cfg_weight 0 speaks by the conditioned row alone") {
  auto plain = request();
  plain.options.temperature = 0.0f;
  plain.options.repetition_penalty = 1.0f;
  plain.options.cfg_weight = 0.0f;
  auto tokens = speak(plain);
  CHECK(argmaxes(plain, tokens) == tokens);
  auto guided = plain;
  guided.options.cfg_weight = 2.0f;
  CHECK(speak(guided) != tokens);
}

TEST_CASE("cfg_weight 0 keeps one row of cache, guidance two") {
  auto cache_bytes = [](float cfg_weight) {
    auto r = request();
    r.options.cfg_weight = cfg_weight;
    r.options.max_tokens = 1000;
    mx::synchronize(cpu_stream());
    size_t before = mx::get_active_memory();
    SpeechTokens speech(tiny_t3(), r);
    speech.next();
    mx::synchronize(tiny_t3()->stream());
    return mx::get_active_memory() - before;
  };
  // What the ops keep for prompts of this length is there afterwards.
  for (float cfg_weight : {0.0f, 0.5f}) {
    auto r = request();
    r.options.cfg_weight = cfg_weight;
    speak(r);
  }
  // 16 positions of prompt, two layers of keys and values, 128 channels.
  double row = 2 * 2 * (16 + 1000) * 128 * sizeof(float);
  CHECK(cache_bytes(0.0f) == doctest::Approx(row).epsilon(0.02));
  CHECK(cache_bytes(0.5f) == doctest::Approx(2 * row).epsilon(0.02));
}

TEST_CASE("the repetition penalty keeps a greedy speaker from repeating") {
  auto greedy = request();
  greedy.options.max_tokens = 60;
  greedy.options.temperature = 0.0f;
  greedy.options.repetition_penalty = 100.0f;
  auto tokens = speak(greedy);
  CHECK(tokens.size() == 60);
  std::ranges::sort(tokens);
  CHECK(std::ranges::adjacent_find(tokens) == tokens.end());
}

TEST_CASE("speech ends at the stop token, and not before min_tokens") {
  TinyT3 tiny;
  tiny.stops_at_once = true;
  auto model = tiny.load();
  auto r = request();
  r.options.temperature = 0.0f;
  CHECK(speak(r, model).empty());
  r.min_tokens = 7;
  CHECK(speak(r, model).size() == 7);
  r.min_tokens = 50;
  auto tokens = speak(r, model);
  CHECK(tokens.size() == 20);
  CHECK(std::ranges::count(tokens, kStopSpeech) == 0);
}

TEST_CASE("short texts are said within bounds of their own") {
  TinyT3 stopping, aligned;
  stopping.stops_at_once = true;
  stopping.settings = aligned.settings =
      R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  auto eager = stopping.load(), rambling = aligned.load();
  for (int text = 1; text <= 6; ++text) {
    for (bool analyser : {false, true}) {
      CAPTURE(text);
      CAPTURE(analyser);
      auto r = request();
      r.text_tokens.assign(text, 5);
      r.analyser = analyser;
      r.options.temperature = 0.0f;
      r.options.max_tokens = 200;
      auto least = speak(r, eager).size(), most = speak(r, rambling).size();
      CHECK(least >= (text <= 5 ? 5 : 0));
      CHECK(most >= least);
      if (text <= 5) {
        CHECK(most <= size_t(25 + 10 * text));
      }
      r.options.max_tokens = 3;
      CHECK(speak(r, rambling).size() <= 3);
    }
  }
  // Without an analyser nothing else ends what the model does not.
  auto r = request();
  r.options.max_tokens = 200;
  r.options.temperature = 0.0f;
  for (int text : {1, 5, 6}) {
    r.text_tokens.assign(text, 5);
    size_t bound = text <= 5 ? 25 + 10 * text : 200;
    CHECK(speak(r).size() == bound);
  }
}

TEST_CASE("after the end there is nothing more") {
  auto r = request();
  r.options.max_tokens = 3;
  SpeechTokens speech(tiny_t3(), r);
  for (int i = 0; i < 3; ++i) {
    CHECK(speech.next().has_value());
  }
  CHECK_FALSE(speech.next().has_value());
  CHECK_FALSE(speech.next().has_value());
}

TEST_CASE("two requests at once do not disturb each other") {
  auto a = request(), b = request();
  b.options.seed = 5;
  b.text_tokens = {40, 41, 42};
  auto expected_a = speak(a), expected_b = speak(b);
  SpeechTokens first(tiny_t3(), a), second(tiny_t3(), b);
  std::vector<int> tokens_a, tokens_b;
  for (int i = 0; i < 20; ++i) {
    tokens_a.push_back(first.next().value());
    tokens_b.push_back(second.next().value());
  }
  CHECK(tokens_a == expected_a);
  CHECK(tokens_b == expected_b);
}

TEST_CASE("the analyser says where in the text the speech is") {
  TinyT3 tiny;
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  auto model = tiny.load();
  auto r = request();
  r.analyser = true;
  SpeechTokens speech(model, r);
  CHECK(speech.text_position() == -1);
  CHECK(speech.stop_forced() == 0);
  int spoken = 0;
  for (; speech.next(); ++spoken) {
    CHECK(speech.text_position() >= 0);
    CHECK(speech.text_position() < int(r.text_tokens.size()) + 2);
    CHECK(speech.stop_forced() == 0);
  }
  if (spoken < r.options.max_tokens) {
    CHECK(speech.stop_forced() != 0);
  }
  CHECK(speech.text_position() < int(r.text_tokens.size()) + 2);
  CHECK(SpeechTokens(tiny_t3(), request()).text_position() == -1);
}

TEST_CASE("a request that makes no sense is refused with the value seen") {
  auto error = [](auto change) {
    auto r = request();
    change(r);
    return argument_error_of([&] { SpeechTokens(tiny_t3(), r); });
  };
  CHECK(error([](auto&) {}) == "");
  CHECK(error([](auto& r) {
          r.options.temperature = -0.5f;
        }) == "temperature must be 0 or more, not -0.500000");
  CHECK(error([](auto& r) {
          r.options.temperature = NAN;
        }) == "temperature must be 0 or more, not nan");
  CHECK(error([](auto& r) {
          r.options.repetition_penalty = 0.0f;
        }) == "repetition_penalty must be above 0, not 0.000000");
  CHECK(error([](auto& r) {
          r.options.min_p = 1.5f;
        }) == "min_p must be between 0 and 1, not 1.500000");
  CHECK(error([](auto& r) {
          r.options.top_p = NAN;
        }) == "top_p must be between 0 and 1, not nan");
  CHECK(error([](auto& r) {
          r.options.cfg_weight = -1.0f;
        }) == "cfg_weight must be 0 or more, not -1.000000");
  CHECK(error([](auto& r) {
          r.options.max_tokens = 0;
        }) == "max_tokens must be 1 or more, not 0");
  CHECK(error([](auto& r) {
          r.options.max_tokens = 1101;
        }) == "max_tokens is 1101; this model has positions for 1100");
  CHECK(error([](auto& r) {
          r.analyser = true;
        }) == "this model names no alignment heads, which the analyser needs");
  CHECK(
      error([](auto& r) { r.text_tokens.assign(39, 5); }) ==
      "the text has 39 tokens; this model takes 38 at a time: split it into "
      "sentences");
}

TEST_CASE("speaking 1,000 tokens leaves MLX's memory as it was") {
  auto r = request();
  r.options.max_tokens = 1000;
  r.min_tokens = 1000;
  SpeechTokens speech(tiny_t3(), r);
  size_t active = 0, peak = 0;
  int spoken = 0;
  for (; speech.next(); ++spoken) {
    if (spoken == 9) {
      mx::synchronize(cpu_stream());
      active = mx::get_active_memory();
      mx::reset_peak_memory();
    } else if (spoken == 19) {
      peak = mx::get_peak_memory();
    }
  }
  mx::synchronize(cpu_stream());
  CHECK(spoken == 1000);
  CHECK(mx::get_active_memory() == active);
  // How far the host runs ahead of the frees differs by a few rows of logits.
  CHECK(mx::get_peak_memory() <= peak + 4 * 6565 * sizeof(float));
}
