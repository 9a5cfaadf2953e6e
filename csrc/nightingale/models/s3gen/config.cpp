#include "nightingale/models/s3gen/config.h"

#include "nightingale/error.h"

namespace nightingale {

namespace {

const std::string kEncoder = "flow.encoder.";
const std::string kEstimator = "flow.decoder.estimator.";

void check(const FlowConfig& config, const TensorFile& file) {
  auto fail = [&](const std::string& what) {
    throw Error(file.path() + " is not an S3Gen checkpoint: " + what);
  };
  auto positive = [&](int value, const std::string& what) {
    if (value < 1) {
      fail("it has no " + what);
    }
  };
  auto whole_heads = [&](int value, const std::string& what) {
    if (value < 1 || value % kHeadDim != 0) {
      fail(
          what + " is " + std::to_string(value) +
          ", not a multiple of the head size " + std::to_string(kHeadDim));
    }
  };
  positive(config.layers, "tensors named " + kEncoder + "encoders.*");
  positive(config.upper_layers, "tensors named " + kEncoder + "up_encoders.*");
  positive(config.transformers, "transformer blocks");
  positive(
      config.middle_levels, "tensors named " + kEstimator + "mid_blocks.*");
  whole_heads(config.width, "the encoder's width");
  whole_heads(config.attention, "the estimator's attention width");
  if (config.sound_tokens != kStartSpeech) {
    fail(
        "it has " + std::to_string(config.sound_tokens) +
        " speech tokens, expected " + std::to_string(kStartSpeech));
  }
}

} // namespace

FlowConfig FlowConfig::of(const TensorFile& file) {
  if (!file.contains("flow.input_embedding.weight")) {
    throw Error(
        file.path() +
        " is not an S3Gen checkpoint: it has no flow.input_embedding.weight");
  }
  FlowConfig config;
  auto size = [&](const std::string& layer, int ndim, int axis) {
    return size_of(file, layer + ".weight", ndim, axis);
  };
  config.sound_tokens = size("flow.input_embedding", 2, 0);
  config.speaker_size = size("flow.spk_embed_affine_layer", 2, 1);
  config.width = size("flow.input_embedding", 2, 1);
  config.layers = count_layers(file, kEncoder + "encoders.");
  config.upper_layers = count_layers(file, kEncoder + "up_encoders.");
  config.ffn = size(kEncoder + "encoders.0.feed_forward.w_1", 2, 0);
  config.channels = size(kEstimator + "final_proj", 3, 1);
  config.time_channels = size(kEstimator + "time_mlp.linear_1", 2, 0);
  std::string first = kEstimator + "down_blocks.0.1.";
  config.transformers = count_layers(file, first);
  config.attention = size(first + "0.attn1.to_q", 2, 0);
  config.estimator_ffn = size(first + "0.ff.net.0.proj", 2, 0);
  config.middle_levels = count_layers(file, kEstimator + "mid_blocks.");
  config.meanflow = file.contains(kEstimator + "time_embed_mixer.weight");
  check(config, file);
  return config;
}

int s3gen_bits(const TensorFile& file, int bits, mx::Stream s) {
  bool wanted = bits > 0 || file.fewest_bits() > 0;
  return wanted && ops::on_cpu(s) ? 8 : 0;
}

} // namespace nightingale
