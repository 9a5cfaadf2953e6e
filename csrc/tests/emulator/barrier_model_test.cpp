#include <doctest/doctest.h>

#include <algorithm>

#include "backends/gpu/emulated_gpu.h"
#include "emulator/barrier_model.h"
#include "models/s3gen/tiny_s3gen.h"
#include "models/t3/tiny_t3.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/models/t3/speech_tokens.h"

using namespace nightingale;
using namespace nightingale::testing;
using emulator::BarrierEmulator;
using emulator::BarrierModel;

// Whole utterances as MLX encodes them for Metal. Kernels compute nothing here:
// what matters is who touches which memory, and what orders it.

namespace {

// Encoders of any length, of the length of MLX's on an iPhone, and of one
// dispatch, where nothing but a launch's inputs orders it.
const std::vector<int> kEncoders{1 << 30, 20, 1};

class Followed {
 public:
  Followed() : gpu_(kEncoders) {
    test_hooks::emulate_kernels(&gpu_);
    test_hooks::treat_cpu_as_gpu(true);
  }
  ~Followed() {
    test_hooks::treat_cpu_as_gpu(false);
    test_hooks::emulate_kernels(&metal_emulator());
  }
  BarrierEmulator& emulator() {
    return gpu_;
  }

  // The first launch of a kernel is waited for: the second utterance is
  // followed as all later ones run.
  template <typename Speak>
  void second(const Speak& speak) {
    speak();
    gpu_.restart();
    speak();
    CHECK(gpu_.models()[0].dispatches() > 0);
  }

 private:
  BarrierEmulator gpu_;
};

mx::Stream stream() {
  return mx::default_stream(mx::Device::cpu);
}

std::string first_fault(const BarrierEmulator& gpu) {
  return gpu.faults().empty() ? "" : gpu.faults()[0];
}

bool has_fault(const BarrierEmulator& gpu, const std::string& part) {
  return std::any_of(
      gpu.faults().begin(), gpu.faults().end(), [&](const auto& fault) {
        return contains(fault, part);
      });
}

void speak(const std::shared_ptr<const T3>& model, int tokens, bool analyser) {
  SpeechRequest request;
  request.text_tokens = {5, 6, 7, 8, 9, 10};
  request.voice = model->condition(tiny_voice());
  request.min_tokens = request.options.max_tokens = tokens;
  request.analyser = analyser;
  SpeechTokens speech(model, request);
  while (speech.next()) {
  }
}

TinyT3 watching_t3() {
  TinyT3 tiny;
  tiny.settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0]]}})";
  return tiny;
}

void make_audio(const Vocoder& vocoder) {
  auto state = vocoder.begin({.seed = 5});
  for (int frames : {3, 30, 20}) {
    auto mel = noise_array({frames, kMels}, 31);
    mx::eval(vocoder.feed(state, mel, frames == 20));
  }
}

} // namespace

TEST_CASE("launches of T3 are ordered where they share memory") {
  if (!emulated()) {
    return;
  }
  Followed gpu;
  auto tiny = watching_t3();
  for (mx::Dtype dtype : kFloatTypes) {
    for (std::optional<int> bits : {std::optional<int>(), {8}, {4}}) {
      auto model = std::make_shared<T3>(*tiny.load(dtype, bits, stream()));
      // Caches and weights are quantized independently of each other.
      for (int kv : bits ? std::vector<int>{0} : std::vector<int>{0, 8, 4}) {
        CAPTURE(dtype);
        CAPTURE(bits.value_or(0));
        CAPTURE(kv);
        model->keep_cache({.bits = kv});
        // The longest passes from one part of the attention to the next.
        gpu.second([&] {
          bool longest = dtype == mx::float16 && !bits && kv == 0;
          speak(model, longest ? 140 : 5, true);
          speak(model, 5, false);
        });
        CHECK(first_fault(gpu.emulator()) == "");
      }
    }
  }
}

TEST_CASE("launches of the flow are ordered where they share memory") {
  if (!emulated()) {
    return;
  }
  Followed gpu;
  for (bool meanflow : {false, true}) {
    TinyS3Gen tiny{.middle_levels = 2, .transformers = 2, .meanflow = meanflow};
    for (mx::Dtype dtype : kFloatTypes) {
      CAPTURE(dtype);
      CAPTURE(meanflow);
      auto flow = tiny.load_flow(dtype, stream());
      auto request = tiny_request(6, 8);
      request.steps = 4;
      gpu.second([&] { mx::eval(solve(*flow, request)); });
      CHECK(first_fault(gpu.emulator()) == "");
    }
  }
}

TEST_CASE("launches of the vocoder are ordered where they share memory") {
  if (!emulated()) {
    return;
  }
  Followed gpu;
  TempDir dir;
  auto path = dir.write("s3gen.safetensors", TinyS3Gen{}.checkpoint());
  for (bool halves : {false, true}) {
    CAPTURE(halves);
    auto vocoder = Vocoder::load(
        TensorFile::open(path), stream(), nullptr, {.halves = halves});
    gpu.second([&] { make_audio(vocoder); });
    CHECK(first_fault(gpu.emulator()) == "");
  }
}

TEST_CASE("a removed dependency between launches is found") {
  if (!emulated()) {
    return;
  }
  Followed gpu;
  SUBCASE("of T3's attention") {
    // Without watched heads this is all that orders the two.
    gpu.emulator().hide("attention_out", "out");
    auto model = watching_t3().load(mx::float16, std::nullopt, stream());
    gpu.second([&] { speak(model, 12, false); });
    CHECK(has_fault(
        gpu.emulator(),
        "attention_out reads out while decode_attention writes out"));
  }
  SUBCASE("of T3's caches, which MLX does not know to be written") {
    gpu.emulator().hide("decode_attention", "qkv");
    gpu.emulator().hide("decode_attention", "after");
    auto model = watching_t3().load(mx::float16, std::nullopt, stream());
    gpu.second([&] { speak(model, 12, true); });
    CHECK(has_fault(
        gpu.emulator(),
        "decode_attention writes keys while decode_attention writes keys"));
  }
  SUBCASE("of the flow's state") {
    gpu.emulator().hide("euler_step", "velocity");
    auto flow = TinyS3Gen{}.load_flow(mx::float16, stream());
    gpu.second([&] { mx::eval(solve(*flow, tiny_request(4, 8))); });
    CHECK(has_fault(gpu.emulator(), "euler_step writes input"));
  }
}

TEST_CASE("dispatches are ordered by barriers in an encoder, fences between") {
  char memory[16];
  auto touch = [&](int byte, bool writes) -> std::vector<BarrierModel::Access> {
    return {{memory, memory + byte, memory + byte + 4, writes, "state"}};
  };
  int token, other;
  for (int length : {1, 2, 100}) {
    CAPTURE(length);
    BarrierModel model(length);
    CHECK(model.add("writer", {memory}, {&token}, touch(0, true)).empty());
    // Other bytes of the same buffer.
    CHECK(model.add("other", {memory}, {&other}, touch(8, true)).empty());
    CHECK(model.add("reader", {memory, &token}, {}, touch(0, false)).empty());
  }
  for (int length : {1, 2, 100}) {
    CAPTURE(length);
    BarrierModel model(length);
    CHECK(model.add("writer", {memory}, {&token}, touch(0, true)).empty());
    auto faults = model.add("reader", {memory}, {&other}, touch(0, false));
    REQUIRE(faults.size() == 1);
    CHECK(
        faults[0] ==
        "reader reads state while writer writes state: no barrier between "
        "dispatches 0 and 1");
  }
}

TEST_CASE("a barrier for others orders all before it, within its encoder") {
  char memory[4];
  int x, y, z;
  std::vector<BarrierModel::Access> writes{
      {memory, memory, memory + 4, true, "state"}};
  BarrierModel long_encoder(100), short_encoder(1);
  for (auto* model : {&long_encoder, &short_encoder}) {
    model->add("first", {memory}, {&x}, writes);
    model->add("producer", {}, {&y}, {});
    model->add("consumer", {&y}, {&z}, {});
  }
  CHECK(long_encoder.barriers() == 1);
  CHECK(long_encoder.add("last", {memory}, {}, writes).empty());
  CHECK(short_encoder.add("last", {memory}, {}, writes).size() == 1);
}
