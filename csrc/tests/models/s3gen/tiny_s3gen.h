#pragma once

#include <memory>

#include "io/noise_checkpoint.h"
#include "nightingale/models/hift/vocoder.h"
#include "nightingale/models/s3gen/flow.h"

namespace nightingale::testing {

// A checkpoint of the official tensor names with random weights, small enough
// to make a second of speech in milliseconds.
struct TinyS3Gen {
  int width = 64, ffn = 96, layers = 2, upper_layers = 1;
  int channels = 32, attention = 64, middle_levels = 1, transformers = 1;
  int speaker_size = 12;
  int vocoder = 32, pitch = 16;
  bool meanflow = false;
  bool old_weight_norm = false;
  std::string left_out = ""; // a tensor that is missing

  std::string checkpoint() const {
    NoiseCheckpoint file(left_out);
    write_encoder(file);
    write_estimator(file);
    write_vocoder(file);
    return file.finish();
  }

  std::shared_ptr<const Flow> load_flow(
      std::optional<mx::Dtype> dtype = std::nullopt,
      mx::Stream s = cpu_stream()) const {
    TempDir dir;
    std::string path = dir.write("s3gen.safetensors", checkpoint());
    return std::make_shared<const Flow>(
        Flow::load(TensorFile::open(path), dtype, s, nullptr));
  }

  std::shared_ptr<const Vocoder> load_vocoder(
      mx::Stream s = cpu_stream()) const {
    TempDir dir;
    std::string path = dir.write("s3gen.safetensors", checkpoint());
    return std::make_shared<const Vocoder>(
        Vocoder::load(TensorFile::open(path), s, nullptr));
  }

 private:
  static void add_linear(
      NoiseCheckpoint& file,
      const std::string& name,
      int outputs,
      int inputs,
      bool bias = true) {
    file.add(name + ".weight", {outputs, inputs}, 1.7f / std::sqrt(inputs));
    if (bias) {
      file.add(name + ".bias", {outputs}, 0.1f);
    }
  }

  static void
  add_norm(NoiseCheckpoint& file, const std::string& name, int channels) {
    file.add(name + ".weight", {channels}, 0.1f, 1.0f);
    file.add(name + ".bias", {channels}, 0.1f);
  }

  static void add_conv(
      NoiseCheckpoint& file,
      const std::string& name,
      int outputs,
      int inputs,
      int taps) {
    float scale = 1.7f / std::sqrt(float(inputs * taps));
    file.add(name + ".weight", {outputs, inputs, taps}, scale);
    file.add(name + ".bias", {outputs}, 0.1f);
  }

  // shape: as the file has it; the norm is over all but its first axis.
  void add_normed(
      NoiseCheckpoint& file,
      const std::string& name,
      const std::vector<int>& shape,
      int outputs,
      float gain = 1.0f) const {
    std::string base = name +
        (old_weight_norm ? ".weight_" : ".parametrizations.weight.original");
    file.add(
        base + (old_weight_norm ? "g" : "0"), {shape[0], 1, 1}, 0.1f, gain);
    file.add(base + (old_weight_norm ? "v" : "1"), shape, 1.0f);
    file.add(name + ".bias", {outputs}, 0.1f);
  }

  void write_encoder(NoiseCheckpoint& file) const {
    file.add("flow.input_embedding.weight", {kStartSpeech, width}, 1.0f);
    add_linear(file, "flow.spk_embed_affine_layer", kMels, speaker_size);
    add_linear(file, "flow.encoder_proj", kMels, width);
    std::string encoder = "flow.encoder.";
    for (std::string entry : {"embed", "up_embed"}) {
      add_linear(file, encoder + entry + ".out.0", width, width);
      add_norm(file, encoder + entry + ".out.1", width);
    }
    add_conv(file, encoder + "pre_lookahead_layer.conv1", width, width, 4);
    add_conv(file, encoder + "pre_lookahead_layer.conv2", width, width, 3);
    add_conv(file, encoder + "up_layer.conv", width, width, 5);
    add_norm(file, encoder + "after_norm", width);
    for (int i = 0; i < layers + upper_layers; ++i) {
      std::string layer = i < layers
          ? encoder + "encoders." + std::to_string(i) + "."
          : encoder + "up_encoders." + std::to_string(i - layers) + ".";
      for (std::string part : {"q", "k", "v", "out"}) {
        add_linear(file, layer + "self_attn.linear_" + part, width, width);
      }
      add_linear(file, layer + "self_attn.linear_pos", width, width, false);
      for (std::string bias : {"pos_bias_u", "pos_bias_v"}) {
        file.add(
            layer + "self_attn." + bias, {width / kHeadDim, kHeadDim}, 0.5f);
      }
      add_linear(file, layer + "feed_forward.w_1", ffn, width);
      add_linear(file, layer + "feed_forward.w_2", width, ffn);
      add_norm(file, layer + "norm_ff", width);
      add_norm(file, layer + "norm_mha", width);
    }
  }

  void write_estimator(NoiseCheckpoint& file) const {
    std::string estimator = "flow.decoder.estimator.";
    int times = 4 * channels;
    add_linear(file, estimator + "time_mlp.linear_1", times, 4 * kMels);
    add_linear(file, estimator + "time_mlp.linear_2", times, times);
    if (meanflow) {
      add_linear(file, estimator + "time_embed_mixer", times, 2 * times, false);
    }
    for (int i = 0; i < middle_levels + 2; ++i) {
      bool first = i == 0, last = i == middle_levels + 1;
      std::string level = estimator +
          (first      ? "down_blocks.0."
               : last ? "up_blocks.0."
                      : "mid_blocks." + std::to_string(i - 1) + ".");
      int inputs = first ? 4 * kMels : last ? 2 * channels : channels;
      add_linear(file, level + "0.mlp.1", channels, times);
      add_conv(file, level + "0.block1.block.0", channels, inputs, 3);
      add_norm(file, level + "0.block1.block.2", channels);
      add_conv(file, level + "0.block2.block.0", channels, channels, 3);
      add_norm(file, level + "0.block2.block.2", channels);
      add_conv(file, level + "0.res_conv", channels, inputs, 1);
      for (int j = 0; j < transformers; ++j) {
        std::string block = level + "1." + std::to_string(j) + ".";
        add_norm(file, block + "norm1", channels);
        add_norm(file, block + "norm3", channels);
        for (std::string part : {"to_q", "to_k", "to_v"}) {
          add_linear(file, block + "attn1." + part, attention, channels, false);
        }
        add_linear(file, block + "attn1.to_out.0", channels, attention);
        add_linear(file, block + "ff.net.0.proj", 4 * channels, channels);
        add_linear(file, block + "ff.net.2", channels, 4 * channels);
      }
      if (first || last) {
        add_conv(file, level + "2", channels, channels, 3);
      }
    }
    add_conv(file, estimator + "final_block.block.0", channels, channels, 3);
    add_norm(file, estimator + "final_block.block.2", channels);
    add_conv(file, estimator + "final_proj", kMels, channels, 1);
  }

  void write_vocoder(NoiseCheckpoint& file) const {
    std::string hift = "mel2wav.";
    add_linear(file, hift + "m_source.l_linear", 1, 9);
    add_normed(file, hift + "conv_pre", {vocoder, kMels, 7}, vocoder);
    int channels = vocoder;
    const int kernels[] = {16, 11, 7}, downs[] = {30, 6, 1};
    for (int i = 0; i < 3; ++i) {
      std::string number = std::to_string(i);
      channels /= 2;
      add_normed(
          file,
          hift + "ups." + number,
          {2 * channels, channels, kernels[i]},
          channels);
      add_conv(file, hift + "source_downs." + number, channels, 18, downs[i]);
      add_block(
          file,
          hift + "source_resblocks." + number + ".",
          channels,
          i == 2 ? 11 : 7);
      for (int j = 0; j < 3; ++j) {
        std::string block = std::to_string(3 * i + j);
        add_block(file, hift + "resblocks." + block + ".", channels, 3 + 4 * j);
      }
    }
    add_normed(file, hift + "conv_post", {18, channels, 7}, 18, 0.5f);
    for (int i = 0; i < 5; ++i) {
      add_normed(
          file,
          hift + "f0_predictor.condnet." + std::to_string(2 * i),
          {pitch, i == 0 ? kMels : pitch, 3},
          pitch);
    }
    file.add(hift + "f0_predictor.classifier.weight", {1, pitch}, 200.0f);
    file.add(hift + "f0_predictor.classifier.bias", {1}, 1.0f, 60.0f);
  }

  void add_block(
      NoiseCheckpoint& file,
      const std::string& name,
      int channels,
      int taps) const {
    for (int i = 0; i < 3; ++i) {
      std::string number = std::to_string(i);
      for (std::string side : {"1.", "2."}) {
        add_normed(
            file,
            name + "convs" + side + number,
            {channels, channels, taps},
            channels,
            0.5f);
        file.add(
            name + "activations" + side + number + ".alpha",
            {channels},
            0.2f,
            1.0f);
      }
    }
  }
};

inline std::shared_ptr<const Flow> tiny_flow() {
  static const auto model = TinyS3Gen{}.load_flow();
  return model;
}

inline std::shared_ptr<const Vocoder> tiny_vocoder() {
  static const auto model = TinyS3Gen{}.load_vocoder();
  return model;
}

// `tokens` tokens after a prompt of `prompt_frames` mel frames.
inline MelRequest tiny_request(int tokens, int prompt_frames = 20) {
  MelRequest request;
  for (int i = 0; i < tokens; ++i) {
    request.tokens.push_back(i * 613 % kStartSpeech);
  }
  for (int i = 0; i < prompt_frames / kFramesPerToken; ++i) {
    request.voice.prompt_tokens.push_back(i * 71 % kStartSpeech);
  }
  request.voice.prompt_mel = noise(prompt_frames * kMels, 5);
  request.voice.speaker = noise(TinyS3Gen{}.speaker_size, 6);
  request.steps = 3;
  return request;
}

inline mx::array solve(const Flow& flow, const MelRequest& request) {
  auto state = flow.begin(request);
  while (!state.finished()) {
    flow.step(state);
  }
  return flow.finish(std::move(state));
}

// The mels of `requests`. Each is begun a step after the one before it and then
// stepped along with all that are under way.
inline std::vector<mx::array> solve_together(
    const Flow& flow,
    const std::vector<MelRequest>& requests) {
  std::vector<MelState> states;
  std::vector<MelState*> under_way;
  do {
    if (states.size() < requests.size()) {
      states.push_back(flow.begin(requests[states.size()]));
    }
    under_way.clear();
    for (auto& state : states) {
      if (!state.finished()) {
        under_way.push_back(&state);
      }
    }
    if (!under_way.empty()) {
      flow.step(under_way);
    }
  } while (!under_way.empty());
  std::vector<mx::array> mels;
  for (auto& state : states) {
    mels.push_back(flow.finish(std::move(state)));
  }
  return mels;
}

// Of different lengths and numbers of steps; the first needs the most.
inline std::vector<MelRequest> different_requests() {
  std::vector<MelRequest> requests{
      tiny_request(4), tiny_request(9, 0), tiny_request(1, 7), tiny_request(6)};
  int steps[] = {6, 4, 2, 3};
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].steps = steps[i];
    requests[i].seed = i;
  }
  return requests;
}

} // namespace nightingale::testing
