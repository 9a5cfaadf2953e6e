#pragma once

#include <array>

#include "io/noise_checkpoint.h"
#include "nightingale/models/voice/speaker_encoder.h"

namespace nightingale::testing {

// A checkpoint of the official tensor names with random weights.
struct TinySpeakerEncoder {
  int width = 3, entry = 10, bottleneck = 6, growth = 4, embedding = 7;
  std::array<int, 3> layers{2, 1, 3}; // of the blocks
  std::string left_out = ""; // a tensor that is missing
  std::string misshapen = ""; // a tensor that has one dimension too many

  // Of the file, which is open.
  Weights weights() const {
    TempDir dir;
    return Weights(
        TensorFile::open(dir.write("s3gen.safetensors", checkpoint())),
        mx::float32);
  }

  SpeakerEncoder load() const {
    auto opened = weights();
    return SpeakerEncoder(opened, cpu_stream());
  }

 private:
  void add(
      NoiseCheckpoint& file,
      std::string name,
      std::vector<int> shape,
      float scale,
      float offset = 0.0f) const {
    if (name == misshapen) {
      shape.push_back(1);
    }
    file.add("speaker_encoder." + name, shape, scale, offset);
  }

  void add_conv(
      NoiseCheckpoint& file,
      const std::string& name,
      const std::vector<int>& shape) const {
    float inputs = shape[1];
    for (size_t i = 2; i < shape.size(); ++i) {
      inputs *= shape[i];
    }
    add(file, name + ".weight", shape, 1.4f / std::sqrt(inputs));
  }

  void add_norm(
      NoiseCheckpoint& file,
      const std::string& name,
      int channels,
      bool affine = true) const {
    if (affine) {
      add(file, name + ".weight", {channels}, 0.2f, 1.0f);
      add(file, name + ".bias", {channels}, 0.2f);
    }
    add(file, name + ".running_mean", {channels}, 0.2f);
    add(file, name + ".running_var", {channels}, 0.1f, 1.0f);
    add(file, name + ".num_batches_tracked", {1}, 1.0f);
  }

  void add_head(NoiseCheckpoint& file) const {
    add_conv(file, "head.conv1", {width, 1, 3, 3});
    add_norm(file, "head.bn1", width);
    for (std::string layer : {"head.layer1.", "head.layer2."}) {
      for (std::string block : {"0.", "1."}) {
        for (std::string number : {"1", "2"}) {
          add_conv(file, layer + block + "conv" + number, {width, width, 3, 3});
          add_norm(file, layer + block + "bn" + number, width);
        }
      }
      add_conv(file, layer + "0.shortcut.0", {width, width, 1, 1});
      add_norm(file, layer + "0.shortcut.1", width);
    }
    add_conv(file, "head.conv2", {width, width, 3, 3});
    add_norm(file, "head.bn2", width);
  }

  void add_layer(NoiseCheckpoint& file, const std::string& name, int channels)
      const {
    add_norm(file, name + "nonlinear1.batchnorm", channels);
    add_conv(file, name + "linear1", {bottleneck, channels, 1});
    add_norm(file, name + "nonlinear2.batchnorm", bottleneck);
    std::string cam = name + "cam_layer.";
    add_conv(file, cam + "linear_local", {growth, bottleneck, 3});
    add_conv(file, cam + "linear1", {bottleneck / 2, bottleneck, 1});
    add(file, cam + "linear1.bias", {bottleneck / 2}, 0.2f);
    add_conv(file, cam + "linear2", {growth, bottleneck / 2, 1});
    add(file, cam + "linear2.bias", {growth}, 0.5f);
  }

  std::string checkpoint() const {
    NoiseCheckpoint file(left_out.empty() ? "" : "speaker_encoder." + left_out);
    add_head(file);
    std::string vector = "xvector.";
    add_conv(file, vector + "tdnn.linear", {entry, width * 10, 5});
    add_norm(file, vector + "tdnn.nonlinear.batchnorm", entry);
    int channels = entry;
    for (size_t b = 0; b < layers.size(); ++b) {
      std::string number = std::to_string(b + 1);
      for (int i = 1; i <= layers[b]; ++i) {
        std::string layer = ".tdnnd" + std::to_string(i) + ".";
        add_layer(file, vector + "block" + number + layer, channels);
        channels += growth;
      }
      std::string transit = vector + "transit" + number + ".";
      add_norm(file, transit + "nonlinear.batchnorm", channels);
      add_conv(file, transit + "linear", {channels / 2, channels, 1});
      channels /= 2;
    }
    add_norm(file, vector + "out_nonlinear.batchnorm", channels);
    add_conv(file, vector + "dense.linear", {embedding, 2 * channels, 1});
    add_norm(file, vector + "dense.nonlinear.batchnorm", embedding, false);
    return file.finish();
  }
};

} // namespace nightingale::testing
