#include "nightingale/models/voice/speech_tokenizer.h"

#include <doctest/doctest.h>

#include <limits>
#include <set>

#include "backends/cpu/thread_count.h"
#include "nightingale/family.h"
#include "nightingale/models/voice/features.h"
#include "tiny_tokenizer.h"
#include "tokenizer_reference.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

mx::array sound(int samples, uint32_t seed = 1) {
  auto x = noise(samples, seed);
  for (int i = 0; i < samples; ++i) {
    x[i] *= 0.1f * (1.0f + std::sin(0.001f * i));
  }
  return array_of(x, {samples});
}

// Digits of base three, the first of them the least.
std::vector<int> tokens_reference(const mx::array& code) {
  Values x = values(code);
  std::vector<int> tokens;
  for (size_t at = 0; at < x.size(); at += 8) {
    int token = 0, place = 1;
    for (int digit = 0; digit < 8; ++digit, place *= 3) {
      token += place * (x[at + digit] < -0.5 ? 0 : x[at + digit] > 0.5 ? 2 : 1);
    }
    tokens.push_back(token);
  }
  return tokens;
}

} // namespace

TEST_CASE("the encoder's output is that of double precision") {
  for (auto [frames, layers] :
       {std::pair(1, 1), std::pair(4, 1), std::pair(90, 2)}) {
    CAPTURE(frames);
    TinyTokenizer tiny{.layers = layers};
    auto mel = noise_array({frames, 128}, 3);
    Values expected =
        TokenizerReference(tiny.checkpoint()).code(values(mel), layers);
    auto code = tiny.load()->code(mel);
    CHECK(code.shape() == mx::Shape{(frames + 3) / 4, 8});
    CHECK(relative_error(code, expected) < 3e-5);
  }
}

TEST_CASE("tokens are their code's digits, of which there are many") {
  auto tokenizer = tiny_tokenizer();
  auto x = sound(16000);
  auto tokens = tokenizer->tokens(x);
  CHECK(tokens.size() == 25);
  auto mel = tokenizer_mel(x, cpu_stream());
  CHECK(tokens == tokens_reference(tokenizer->code(mel)));
  CHECK(std::set<int>(tokens.begin(), tokens.end()).size() > 10);
}

TEST_CASE("the first digit counts one, the last 2187") {
  auto all = [](std::vector<float> bias) {
    return TinyTokenizer{.layers = 1, .quantized_bias = bias}.load()->tokens(
        sound(1000));
  };
  // tanh(0.5) is below a half, tanh(0.6) above.
  CHECK(
      all({9, 0, 0, 0, 0, 0, 0, 0}) == std::vector<int>(2, (6561 - 1) / 2 + 1));
  CHECK(all({-9, -9, -9, -9, -9, -9, -9, -9}) == std::vector<int>(2, 0));
  CHECK(all({9, 9, 9, 9, 9, 9, 9, 9}) == std::vector<int>(2, 6560));
  CHECK(all({-9, -9, -9, -9, -9, -9, -9, 9}) == std::vector<int>(2, 2 * 2187));
  CHECK(
      all({0.5, 0.6, -0.5, -0.6, -9, -9, -9, -9}) ==
      std::vector<int>(2, 1 + 2 * 3 + 1 * 9 + 0 * 27));
}

TEST_CASE("a token is made of every four frames that begin") {
  for (int samples : {320, 640, 799, 800, 1280, 1440, 16000}) {
    CAPTURE(samples);
    int frames = samples / 160;
    CHECK(tiny_tokenizer()->tokens(sound(samples)).size() == (frames + 3) / 4u);
  }
}

TEST_CASE("a limit cuts what is heard, once its level is known") {
  auto s = cpu_stream();
  auto tokenizer = tiny_tokenizer();
  // The loudest is behind the cut.
  auto x = mx::concatenate(
      {sound(8000),
       mx::multiply(sound(8000, 2), mx::array(5.0f), cpu_stream())},
      0,
      s);
  auto whole = tokenizer_mel(x, s);
  auto heard = mx::slice(whole, {0, 0}, {20, 128}, s);
  CHECK(tokenizer->tokens(x, 5) == tokens_reference(tokenizer->code(heard)));
  auto all = tokenizer->tokens(x);
  CHECK(all.size() == 25);
  for (int limit : {25, 26, std::numeric_limits<int>::max(), 0, -1}) {
    CHECK(tokenizer->tokens(x, limit) == all);
  }
  // 103 frames are 25 tokens and most of another.
  CHECK(tokenizer->tokens(sound(103 * 160), 25).size() == 25);
}

TEST_CASE("a part of a recording has its level below the loudest of all") {
  auto s = cpu_stream();
  auto tokenizer = tiny_tokenizer();
  auto x = mx::concatenate(
      {sound(8000), mx::multiply(sound(8000, 2), mx::array(1e4f), s)}, 0, s);
  auto log = tokenizer->log_mel(x);
  CHECK(log.shape() == mx::Shape{100, 128});
  float loudest = mx::max(log, s).item<float>();
  CHECK(tokenizer->tokens_of(log, loudest) == tokenizer->tokens(x));

  auto part = mx::slice(log, {0, 0}, {20, 128}, s);
  auto heard = mx::slice(tokenizer_mel(x, s), {0, 0}, {20, 128}, s);
  auto tokens = tokenizer->tokens_of(part, loudest);
  CHECK(tokens == tokens_reference(tokenizer->code(heard)));
  // With its own level it would be another sound.
  float own = mx::max(part, s).item<float>();
  CHECK(own < loudest - 1);
  CHECK(tokens != tokenizer->tokens_of(part, own));
}

TEST_CASE("tokens do not depend on the number of threads") {
  auto mel = noise_array({300, 128}, 3);
  auto run = [&] { return floats(tiny_tokenizer()->code(mel)); };
  std::vector<float> alone;
  {
    ThreadCount one(1);
    alone = run();
  }
  ThreadCount three(3);
  CHECK(same_bits(run(), alone));
}

TEST_CASE("a recording that the tokenizer cannot take is refused") {
  auto tokenizer = tiny_tokenizer();
  auto message = [&](int frames, int channels) {
    return argument_error_of([&] {
      tokenizer->code(mx::zeros({frames, channels}, mx::float32, cpu_stream()));
    });
  };
  CHECK(contains(message(3001, 128), "[3001, 128]"));
  CHECK(contains(message(3001, 128), "30 s at most"));
  CHECK(contains(message(0, 128), "[0, 128]"));
  CHECK(contains(message(100, 80), "[100, 80]"));
  CHECK(message(3000, 128).empty());
  auto tokens = [&](int samples, int limit) {
    return argument_error_of([&] {
      auto x = mx::zeros({samples}, mx::float32, cpu_stream());
      tokenizer->tokens(x, limit);
    });
  };
  CHECK(contains(tokens(480160, 0), "30 s at most"));
  CHECK(tokens(480160, 10).empty());
  CHECK(contains(tokens(100, 0), "at least 201"));
}

TEST_CASE("a file without a whole speech tokenizer is refused by name") {
  for (std::string name :
       {"tokenizer.encoder.conv1.weight",
        "tokenizer.encoder.blocks.0.mlp.0.weight",
        "tokenizer.encoder.blocks.1.attn.key.weight",
        "tokenizer.encoder.blocks.1.attn.fsmn_block.weight",
        "tokenizer.quantizer._codebook.project_down.bias"}) {
    CAPTURE(name);
    auto message = error_of([&] { TinyTokenizer{.left_out = name}.load(); });
    CHECK(contains(message, name));
  }
  auto error = [](const TinyTokenizer& tiny) {
    return error_of([&] { tiny.load(); });
  };
  CHECK(contains(error({.width = 96}), "its width is 96"));
  CHECK(contains(error({.layers = 0}), "tokenizer.encoder.blocks.*"));
  CHECK(contains(error({.mels = 80}), "tokenizer.encoder.conv1.weight"));
  CHECK(contains(error({.digits = 6}), "project_down.weight"));
}
