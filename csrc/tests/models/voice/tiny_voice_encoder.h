#pragma once

#include <memory>

#include "io/noise_checkpoint.h"
#include "nightingale/models/voice/voice_encoder.h"

namespace nightingale::testing {

// A checkpoint of the official tensor names with random weights.
struct TinyVoiceEncoder {
  int units = 20, layers = 2, embedding = 12;
  float proj_offset = 0.0f; // of the bias before the last ReLU
  std::string left_out = ""; // a tensor that is missing
  std::string misshapen = ""; // a tensor that has one dimension too many

  // Of the file, which is open.
  Weights weights() const {
    TempDir dir;
    return Weights(
        TensorFile::open(dir.write("ve.safetensors", checkpoint())),
        mx::float32);
  }

  VoiceEncoder load() const {
    auto opened = weights();
    return VoiceEncoder(opened, cpu_stream());
  }

 private:
  std::string checkpoint() const {
    NoiseCheckpoint file(left_out);
    auto add = [&](const std::string& name,
                   std::vector<int> shape,
                   float scale,
                   float offset = 0.0f) {
      if (name == misshapen) {
        shape.push_back(1);
      }
      file.add(name, shape, scale, offset);
    };
    for (int i = 0; i < layers; ++i) {
      std::string layer = "_l" + std::to_string(i);
      int inputs = i == 0 ? 40 : units;
      add("lstm.weight_ih" + layer, {4 * units, inputs}, 0.3f);
      add("lstm.weight_hh" + layer, {4 * units, units}, 0.3f);
      add("lstm.bias_ih" + layer, {4 * units}, 0.2f);
      add("lstm.bias_hh" + layer, {4 * units}, 0.2f);
    }
    add("proj.weight", {embedding, units}, 0.5f);
    add("proj.bias", {embedding}, 0.2f, proj_offset);
    add("similarity_weight", {1}, 1.0f);
    add("similarity_bias", {1}, 1.0f);
    return file.finish();
  }
};

// Noise at an even level.
inline std::vector<float> noise_recording(int count, uint32_t seed) {
  auto samples = noise(count, seed);
  for (float& x : samples) {
    x *= 0.1f;
  }
  return samples;
}

} // namespace nightingale::testing
