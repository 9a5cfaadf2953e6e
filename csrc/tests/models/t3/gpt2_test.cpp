// T3 with a GPT-2 as its backbone: Turbo and Nano.

#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "gpt2_reference.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/models/t3/text_positions.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::vector<int> kText{5, 6, 7, 8, 9, 10, 30};
const std::vector<int>
    kSpeech{kStartSpeech, 12, 900, 4, 6000, 12, 12, 77, 1, 3210};

std::shared_ptr<const T3> model() {
  static const auto model = tiny_gpt2().load();
  return model;
}

// Deep enough to leave layers out of.
std::shared_ptr<const T3> deep() {
  static const auto model = [] {
    auto tiny = tiny_gpt2();
    tiny.layers = 6;
    return tiny.load(std::nullopt, 8);
  }();
  return model;
}

SpeechRequest request(const T3& model, int tokens) {
  SpeechRequest r;
  r.text_tokens = kText;
  r.voice = model.condition(tiny_voice());
  r.options.max_tokens = tokens;
  r.options.top_k = 1000;
  r.options.top_p = 0.95f;
  r.min_tokens = tokens;
  return r;
}

} // namespace

TEST_CASE("a GPT-2 is known by its tensors") {
  auto tiny = tiny_gpt2();
  const T3Config& config = model()->config();
  CHECK(config.backbone == BackboneKind::gpt2);
  CHECK(config.layers == tiny.layers);
  CHECK(config.heads() == 2);
  CHECK(config.ffn == tiny.ffn);
  CHECK(config.positions == 2200);
  CHECK(config.text_positions == 550);
  CHECK(config.speech_positions == 1100);
  CHECK(config.perceiver_queries == 0);
  CHECK(!config.traits().guidance);
  CHECK(config.traits().top_k == 1000);
  CHECK(tiny_t3()->config().traits().guidance);
  size_t layer = 4 * 128 * 128 + 2 * 128 * 192;
  CHECK(model()->step_bytes() == (2 * layer + 6565 * 128) * sizeof(float));
}

TEST_CASE("a GPT-2 leaves no tensor unknown") {
  TempDir dir;
  auto path = dir.write("tiny.safetensors", tiny_gpt2().checkpoint());
  std::vector<std::string> unknown;
  T3::load(
      TensorFile::open(path),
      std::nullopt,
      std::nullopt,
      cpu_stream(),
      &unknown);
  CHECK(unknown.empty());
}

TEST_CASE("a GPT-2's logits are those of a plain implementation") {
  TempDir dir;
  auto path = dir.write("tiny.safetensors", tiny_gpt2().checkpoint());
  auto expected = gpt2_logits(
      *TensorFile::open(path), tiny_voice(), kText, kSpeech, tiny_gpt2());
  auto voice = model()->condition(tiny_voice());
  CHECK(voice.length == 1 + 5);
  for (int chunk : {0, 1, 3}) {
    CAPTURE(chunk);
    auto found = model()->logits(kText, kSpeech, voice, chunk);
    CHECK(found.shape() == mx::Shape{1, 10, 6565});
    CHECK(relative_error(found, expected) < 1e-5);
  }
}

TEST_CASE("a voice without a prompt is one position of a GPT-2") {
  auto voice = tiny_voice();
  voice.prompt_tokens.clear();
  CHECK(model()->condition(voice).length == 1);
}

TEST_CASE("a GPT-2 takes weights of every kind, up to their rounding") {
  auto run = [](const T3& model) {
    return model.logits(kText, kSpeech, model.condition(tiny_voice()), 1);
  };
  Values exact = values(run(*model()));
  for (auto dtype : {mx::float16, mx::bfloat16}) {
    double error = relative_error(run(*tiny_gpt2().load(dtype)), exact);
    CHECK(error > 0.0);
    CHECK(error < 2e-2);
  }
  for (auto [bits, most] : {std::pair{8, 0.03}, {4, 0.5}}) {
    CAPTURE(bits);
    auto quantized = tiny_gpt2().load(std::nullopt, bits);
    double error = relative_error(run(*quantized), exact);
    CHECK(error > 1e-4);
    CHECK(error < most);
    size_t layers = 2 * (4 * 128 * 128 + 2 * 128 * 192);
    size_t head = (6565 + 27) * 128;
    CHECK(
        quantized->step_bytes() ==
        layers * bits / 8 + head + (layers + head) / 16);
  }
}

TEST_CASE("a quantized GPT-2 has the same bits in any chunks") {
  for (int bits : {8, 4}) {
    auto model = tiny_gpt2().load(std::nullopt, bits);
    auto voice = model->condition(tiny_voice());
    auto one_by_one = model->logits(kText, kSpeech, voice, 1);
    for (int chunk : {2, 5, 8}) {
      CAPTURE(chunk);
      CHECK(same_bits(model->logits(kText, kSpeech, voice, chunk), one_by_one));
    }
  }
}

TEST_CASE("a GPT-2 speaks with a quantized cache and with a budget") {
  auto exact = values(
      model()->logits(kText, kSpeech, model()->condition(tiny_voice()), 1));
  for (auto [bits, most] : {std::pair{8, 0.02}, {4, 0.3}}) {
    auto other = std::make_shared<T3>(*tiny_gpt2().load());
    other->keep_cache({.bits = bits});
    auto voice = other->condition(tiny_voice());
    double error =
        relative_error(other->logits(kText, kSpeech, voice, 1), exact);
    CHECK(error > 1e-5);
    CHECK(error < most);
  }
  auto dropping = std::make_shared<T3>(*tiny_gpt2().load());
  dropping->keep_cache({.budget = 0.5f});
  SpeechTokens speech(dropping, request(*dropping, 200));
  int count = 0;
  while (speech.next()) {
    ++count;
  }
  CHECK(count == 200);
  const auto& cache = speech.cache();
  CHECK(cache.held_bytes() * cache.capacity() < cache.nbytes() * cache.length);
}

TEST_CASE("speaking is what the logits say") {
  auto r = request(*model(), 12);
  r.options.temperature = 0.0f;
  auto tokens = tokens_of(model(), r);
  REQUIRE(tokens.size() == 12);
  std::vector<int> output{kStartSpeech};
  output.insert(output.end(), tokens.begin(), tokens.end() - 1);
  auto logits = floats(model()->logits(kText, output, r.voice, 0));
  for (size_t i = 0; i < tokens.size(); ++i) {
    float* row = logits.data() + i * 6565;
    row[kStopSpeech] = -1e30f; // as min_tokens asks for
    CHECK(std::max_element(row, row + 6565) - row == tokens[i]);
  }
}

TEST_CASE("what a GPT-2 does not take changes nothing") {
  auto r = request(*model(), 12);
  auto expected = tokens_of(model(), r);
  r.options.cfg_weight = 0.0f;
  CHECK(tokens_of(model(), r) == expected);
  r.options.min_p = 0.5f;
  CHECK(tokens_of(model(), r) == expected);
  auto voice = tiny_voice();
  voice.emotion = 2.0f;
  r.voice = model()->condition(voice);
  CHECK(tokens_of(model(), r) == expected);
}

TEST_CASE("a GPT-2 stops at its stop token, without bounds of short texts") {
  auto tiny = tiny_gpt2();
  tiny.stops_at_once = true;
  auto stops = tiny.load();
  auto r = request(*stops, 50);
  r.text_tokens = {5};
  r.min_tokens = 0;
  r.options.temperature = 0.0f;
  CHECK(tokens_of(stops, r).empty());
}

TEST_CASE("drafts change no token of a GPT-2") {
  auto r = request(*deep(), 24);
  auto expected = tokens_of(deep(), r);
  REQUIRE(expected.size() == 24);
  auto shallow = tiny_gpt2().load();
  check_draft(*deep(), *shallow);
  for (const MakeDraft& draft :
       {ngram_draft(expected),
        layer_draft(deep(), draft_layers(6)),
        model_draft(shallow, shallow->condition(tiny_voice())),
        model_draft(deep(), deep()->condition(tiny_voice()))}) {
    for (int proposals : {1, 4}) {
      r.draft = draft;
      r.proposals = proposals;
      CHECK(tokens_of(deep(), r) == expected);
    }
  }
}

TEST_CASE("a model drafts for itself without a miss") {
  auto r = request(*deep(), 24);
  r.draft = model_draft(deep(), deep()->condition(tiny_voice()));
  r.proposals = 3;
  SpeechTokens speech(deep(), r);
  while (speech.next()) {
  }
  CHECK(speech.speculation().proposed > 10);
  CHECK(speech.speculation().accepted == speech.speculation().proposed);
}

TEST_CASE("a draft of another backbone is refused") {
  CHECK(contains(
      error_of([] { check_draft(*tiny_t3(), *model()); }),
      "the draft has a backbone of the kind gpt2, the model llama"));
}

TEST_CASE("sentences of a GPT-2 spoken together say what they say alone") {
  for (auto bits : {std::optional<int>(), std::optional<int>(8)}) {
    auto model = tiny_gpt2().load(std::nullopt, bits);
    std::vector<std::vector<int>> expected;
    std::vector<std::shared_ptr<SpeechTokens>> together;
    for (int number = 0; number < 5; ++number) {
      auto r = request(*model, 6 + 3 * number);
      r.text_tokens.resize(3 + number);
      r.sentence = number;
      expected.push_back(tokens_of(model, r));
      together.push_back(std::make_shared<SpeechTokens>(model, r));
    }
    for (const auto& alone : expected) {
      auto first = together.front();
      together.erase(together.begin());
      std::vector<int> tokens;
      while (auto token = first->next(together)) {
        tokens.push_back(*token);
      }
      CHECK(tokens == alone);
    }
  }
}

TEST_CASE("a GPT-2's alignment heads follow the text, which has no frame") {
  auto tiny = tiny_gpt2();
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  auto aligned = tiny.load();
  auto voice = aligned->condition(tiny_voice());
  auto weights = aligned->text_weights(kText, kSpeech, voice);
  CHECK(weights.shape() == mx::Shape{2, 10, 7});
  std::vector<int> spoken(kSpeech.begin() + 1, kSpeech.end());
  CHECK(text_positions(*aligned, kText, spoken, voice).size() == 9);
}

TEST_CASE("requests that a GPT-2 has no positions for are refused") {
  auto voice = tiny_voice();
  voice.prompt_tokens.assign(376, 1);
  CHECK(argument_error_of([&] {
          model()->condition(voice);
        }) == "the voice's prompt has 376 tokens; this model takes 375");
  auto r = request(*model(), 8);
  r.text_tokens.assign(551, 5);
  CHECK(contains(
      argument_error_of([&] { SpeechTokens(model(), r); }),
      "the text has 551 tokens; this model takes 550 at a time"));
  auto tiny = tiny_gpt2();
  tiny.positions = 16;
  auto narrow = tiny.load();
  CHECK(
      argument_error_of([&] {
        SpeechTokens(narrow, [&] {
          auto r = request(*narrow, 8);
          r.text_tokens.resize(4);
          return r;
        }());
      }) == "voice, text and max_tokens take 18 positions; this model has 16");
}

TEST_CASE("a GPU speaks the tokens that the CPU speaks, with a GPT-2") {
  int steps = emulated() ? 16 : 200;
  for (float temperature : {0.0f, 0.8f}) {
    CAPTURE(temperature);
    auto speak = [&](mx::Stream s) {
      auto model = tiny_gpt2().load(mx::float32, std::nullopt, s);
      auto r = request(*model, steps);
      r.options.temperature = temperature;
      return tokens_of(model, r);
    };
    auto expected = speak(cpu_stream());
    CHECK(int(expected.size()) == steps);
    EmulatedGpu as_gpu;
    CHECK(speak(kernel_stream()) == expected);
  }
}

TEST_CASE("a GPT-2's step is five launches a layer and three more") {
  EmulatedGpu as_gpu;
  for (auto bits : {std::optional<int>(), std::optional<int>(8)}) {
    auto model = tiny_gpt2().load(mx::float16, bits, kernel_stream());
    SpeechTokens speech(model, request(*model, 8));
    speech.next(); // the prompt, and steps the host has queued ahead
    speech.next();
    long before = gpu::kernel_launches();
    speech.next();
    CHECK(gpu::kernel_launches() - before == 5 * 2 + 3);
  }
}
