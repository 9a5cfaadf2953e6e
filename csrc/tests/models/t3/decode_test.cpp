#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/kernel.h"
#include "tiny_t3.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::string kHeads =
    R"({"t3": {"alignment_heads": [[0, 1], [1, 0], [1, 1]]}})";

SpeechRequest request_to(const T3& model, int tokens) {
  SpeechRequest r;
  r.text_tokens = {5, 6, 7, 8, 9, 10, 30, 31, 32};
  r.voice = model.condition(tiny_voice());
  r.min_tokens = tokens;
  r.options.max_tokens = tokens;
  return r;
}

} // namespace

TEST_CASE("a GPU speaks the tokens that the CPU speaks") {
  int steps = emulated() ? 24 : 200;
  TinyT3 tiny;
  tiny.settings = kHeads;
  auto speak = [&](mx::Stream s, float temperature, bool analyser) {
    auto model = tiny.load(mx::float32, std::nullopt, s);
    auto request = request_to(*model, steps);
    request.options.temperature = temperature;
    request.analyser = analyser;
    return tokens_of(model, request);
  };
  for (auto [temperature, analyser] :
       {std::pair{0.0001f, false}, {0.0001f, true}, {0.8f, true}}) {
    CAPTURE(temperature);
    CAPTURE(analyser);
    auto expected = speak(cpu_stream(), temperature, analyser);
    CHECK(int(expected.size()) == steps);
    EmulatedGpu as_gpu;
    CHECK(speak(kernel_stream(), temperature, analyser) == expected);
  }
}

TEST_CASE("a decoding step is five launches a layer and three more") {
  EmulatedGpu as_gpu;
  TinyT3 tiny;
  tiny.settings = kHeads;
  auto model = tiny.load(mx::float16, std::nullopt, kernel_stream());
  auto request = request_to(*model, 8);
  request.analyser = true;
  SpeechTokens speech(model, request);
  speech.next(); // the prompt, and steps the host has queued ahead
  speech.next();
  long before = gpu::kernel_launches();
  speech.next();
  CHECK(gpu::kernel_launches() - before == 5 * tiny.layers + 3);
}

TEST_CASE("quantised weights speak on a GPU, close to what they stand for") {
  EmulatedGpu as_gpu;
  auto s = kernel_stream();
  TinyT3 tiny;
  auto logits = [&](std::optional<int> bits) {
    auto model = tiny.load(mx::float32, bits, s);
    return values(model->logits(
        {5, 6, 7, 8, 9},
        {kStartSpeech, 7, 400},
        model->condition(tiny_voice()),
        1));
  };
  auto whole = logits(std::nullopt);
  CHECK(relative_error(logits(8), whole) < 0.03);
  CHECK(relative_error(logits(4), whole) < 0.5);
}
