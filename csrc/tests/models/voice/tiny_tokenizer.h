#pragma once

#include <memory>

#include "io/noise_checkpoint.h"
#include "nightingale/models/voice/speech_tokenizer.h"

namespace nightingale::testing {

// A speech tokenizer of the official tensor names with random weights.
struct TinyTokenizer {
  int width = 128, ffn = 96, layers = 2;
  int mels = 128, digits = 8;
  std::string left_out = ""; // a tensor that is missing
  // What every frame's code is made of alone, where it is given.
  std::vector<float> quantized_bias = {};

  std::string checkpoint() const {
    NoiseCheckpoint file(left_out);
    write(file);
    return file.finish();
  }

  std::shared_ptr<const SpeechTokenizer> load() const {
    TempDir dir;
    auto path = dir.write("s3gen.safetensors", checkpoint());
    Weights weights(TensorFile::open(path), mx::float32);
    return std::make_shared<const SpeechTokenizer>(weights, cpu_stream());
  }

 private:
  void write(NoiseCheckpoint& file) const {
    std::string encoder = "tokenizer.encoder.";
    add_conv(file, encoder + "conv1", width, mels);
    add_conv(file, encoder + "conv2", width, width);
    for (int i = 0; i < layers; ++i) {
      std::string block = encoder + "blocks." + std::to_string(i) + ".";
      add_linear(file, block + "attn.query", width, width, 3.0f);
      file.add(
          block + "attn.key.weight",
          {width, width},
          3.0f / std::sqrt(float(width)));
      add_linear(file, block + "attn.value", width, width);
      add_linear(file, block + "attn.out", width, width);
      file.add(block + "attn.fsmn_block.weight", {width, 1, 31}, 0.2f);
      add_norm(file, block + "attn_ln");
      add_linear(file, block + "mlp.0", ffn, width);
      add_linear(file, block + "mlp.2", width, ffn);
      add_norm(file, block + "mlp_ln");
    }
    std::string down = "tokenizer.quantizer._codebook.project_down";
    if (quantized_bias.empty()) {
      add_linear(file, down, digits, width, 0.5f);
    } else {
      file.add(down + ".weight", {digits, width}, 0.0f);
      file.add(down + ".bias", {digits}, quantized_bias);
    }
  }

  void add_norm(NoiseCheckpoint& file, const std::string& name) const {
    file.add(name + ".weight", {width}, 0.1f, 1.0f);
    file.add(name + ".bias", {width}, 0.1f);
  }

  static void add_linear(
      NoiseCheckpoint& file,
      const std::string& name,
      int outputs,
      int inputs,
      float gain = 1.0f) {
    file.add(
        name + ".weight", {outputs, inputs}, gain / std::sqrt(float(inputs)));
    file.add(name + ".bias", {outputs}, 0.1f);
  }

  static void add_conv(
      NoiseCheckpoint& file,
      const std::string& name,
      int outputs,
      int inputs) {
    file.add(
        name + ".weight",
        {outputs, inputs, 3},
        1.0f / std::sqrt(3.0f * float(inputs)));
    file.add(name + ".bias", {outputs}, 0.1f);
  }
};

inline std::shared_ptr<const SpeechTokenizer> tiny_tokenizer() {
  static const auto model = TinyTokenizer{}.load();
  return model;
}

} // namespace nightingale::testing
