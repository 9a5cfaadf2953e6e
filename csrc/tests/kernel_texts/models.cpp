#include "kernel_texts/models.h"

#include <filesystem>

#include "backends/gpu/emulated_gpu.h"
#include "models/s3gen/tiny_s3gen.h"
#include "models/t3/tiny_t3.h"
#include "nightingale/models/t3/speech_tokens.h"

namespace nightingale::testing {

namespace {

namespace fs = std::filesystem;

// Given by CMake.
const fs::path kAssets = NIGHTINGALE_ASSETS;

const std::vector<mx::Dtype> kTypes{mx::float32, mx::float16, mx::bfloat16};
const std::vector<mx::Dtype> kHalfTypes{mx::float16, mx::bfloat16};

// Three layers with an alignment head each, as the official model has them.
const TinyT3 kT3{
    .hidden = 1024,
    .layers = 3,
    .ffn = 4096,
    .text_vocabulary = 704,
    .speech_vocabulary = 8194,
    .text_positions = 8,
    .speech_positions = 8,
    .perceiver_queries = 2,
    .settings = R"({"t3": {"alignment_heads": [[0, 1], [1, 0], [2, 1]]}})"};

// Turbo and Nano; their heads are those above.
TinyT3 gpt2(int hidden) {
  return {
      .backbone = BackboneKind::gpt2,
      .hidden = hidden,
      .layers = 3,
      .ffn = 4 * hidden,
      .text_vocabulary = 704,
      .speech_vocabulary = 6563,
      .positions = 32};
}

const TinyS3Gen kS3Gen{
    .width = 512,
    .ffn = 2048,
    .layers = 1,
    .upper_layers = 1,
    .channels = 256,
    .attention = 512,
    .speaker_size = 192,
    .vocoder = 512,
    .pitch = 512};

mx::Stream stream() {
  return mx::default_stream(mx::Device::cpu);
}

void speak(
    const std::shared_ptr<const T3>& model,
    const T3Voice& voice,
    bool guidance,
    bool analyser) {
  SpeechRequest request;
  request.text_tokens = {5, 6};
  request.voice = model->condition(voice);
  request.min_tokens = request.options.max_tokens = 3;
  request.options.cfg_weight = guidance ? 0.5f : 0.0f;
  request.analyser = analyser;
  SpeechTokens speech(model, request);
  while (speech.next()) {
  }
}

void speak_with_t3(
    const std::shared_ptr<const TensorFile>& file,
    const std::vector<std::optional<int>>& weight_bits) {
  for (auto dtype : kTypes) {
    for (auto bits : weight_bits) {
      auto model =
          std::make_shared<T3>(T3::load(file, dtype, bits, stream(), nullptr));
      T3Voice voice{
          .speaker = noise(model->config().speaker_size, 7),
          .prompt_tokens = {17, 4000}};
      bool guidance = model->config().traits().guidance;
      for (int kv : {0, 8, 4}) {
        model->keep_cache({.bits = kv});
        speak(model, voice, guidance, true);
        speak(model, voice, guidance, false);
        if (kv == 0 && guidance) {
          speak(model, voice, false, true);
          speak(model, voice, false, false);
        }
      }
    }
  }
}

MelRequest mel_request(const Flow& flow, int tokens, bool whole) {
  MelRequest request = tiny_request(tokens, 4);
  request.voice.speaker = noise(flow.config().speaker_size, 6);
  request.steps = 1;
  request.finalize = whole;
  return request;
}

void make_mels(
    const std::shared_ptr<const TensorFile>& file,
    const std::vector<mx::Dtype>& types) {
  for (auto dtype : types) {
    auto flow = Flow::load(file, dtype, stream(), nullptr);
    mx::eval(solve(flow, mel_request(flow, 2, true)));
    mx::eval(solve(flow, mel_request(flow, 5, false)));
  }
}

void make_audio(const std::shared_ptr<const TensorFile>& file, bool halves) {
  auto vocoder =
      Vocoder::load(file, stream(), nullptr, FilterFormat{.halves = halves});
  auto state = vocoder.begin({});
  // The first is too short for a sample; the last has nothing before it to add.
  for (int frames : {2, 21, 1}) {
    mx::eval(vocoder.feed(state, mx::zeros({frames, kMels}), frames == 1));
  }
}

struct Official {
  TempDir folder;
  std::shared_ptr<const TensorFile> t3, turbo, nano, s3gen, meanflow;

  Official() {
    folder.write("nightingale.json", kT3.settings);
    auto add = [&](const char* name, const std::string& bytes) {
      return TensorFile::open(folder.write(name, bytes));
    };
    t3 = add("t3.safetensors", kT3.checkpoint());
    turbo = add("turbo.safetensors", gpt2(1024).checkpoint());
    nano = add("nano.safetensors", gpt2(768).checkpoint());
    s3gen = add("s3gen.safetensors", kS3Gen.checkpoint());
    auto distilled = kS3Gen;
    distilled.meanflow = true;
    meanflow = add("meanflow.safetensors", distilled.checkpoint());
  }
};

const Official& official() {
  static const auto* files = new Official;
  return *files;
}

std::shared_ptr<const TensorFile> embedded(const char* name) {
  return TensorFile::open(kAssets / name);
}

} // namespace

void speak_with_every_model() {
  speak_with_t3(official().t3, {std::nullopt, 8, 4});
  speak_with_t3(official().turbo, {std::nullopt, 8});
  speak_with_t3(official().nano, {4});
  // Its file is quantized.
  speak_with_t3(embedded("t3_mtl23ls_v2.safetensors"), {std::nullopt});
  auto small = embedded("s3gen_meanflow.safetensors");
  for (const auto& file : {official().s3gen, official().meanflow, small}) {
    make_mels(file, kTypes);
  }
  make_audio(official().s3gen, false);
  make_audio(small, false);
}

void speak_with_tiles() {
  auto small = embedded("s3gen_meanflow.safetensors");
  for (const auto& file : {official().s3gen, small}) {
    make_mels(file, kHalfTypes);
    make_audio(file, true);
  }
}

} // namespace nightingale::testing
