#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nightingale/checkpoint/weights.h"
#include "nightingale/s3gen/config.h"

namespace nightingale {

// What the estimator is told about time, for every step of one solution: the
// vector that each level adds to its channels.
struct FlowTimes {
  std::vector<float> spans; // how far each step goes
  std::vector<std::vector<mx::array>> shifts; // [step][level]: [channels]
};

// The velocity of the flow: a causal U-Net whose levels are a residual
// convolution and transformers over all frames.
class Estimator {
 public:
  Estimator(Weights& weights, const FlowConfig& config, mx::Stream s);

  // The times of `steps` steps from noise to mel: along a cosine, or even ones
  // for a meanflow.
  FlowTimes times(int steps) const;

  // The type of the input buffer of `velocity`.
  mx::Dtype input_dtype() const {
    return product_;
  }

  // input: [B, frames, 4 * mels]: the flow's state, the encoder's mean, the
  // speaker, the prompt's mel → [B, frames, mels] float32
  mx::array velocity(
      const mx::array& input,
      const std::vector<mx::array>& shifts) const;

 private:
  // Causal convolution of three rows → LayerNorm → Mish.
  struct Block {
    mx::array w, b;
    mx::array norm_w, norm_b;
  };
  // One whose input is two arrays side by side has a second set of weights.
  struct Resnet {
    Block first, second;
    mx::array residual_w, residual_b;
    std::optional<mx::array> first_skip_w, residual_skip_w;
  };
  struct Transformer {
    mx::array attention_norm_w, attention_norm_b;
    mx::array qkv_w;
    mx::array out_w, out_b;
    mx::array ffn_norm_w, ffn_norm_b;
    mx::array up_w, up_b;
    mx::array down_w, down_b;
  };
  struct Level {
    Resnet resnet;
    std::vector<Transformer> transformers;
  };
  struct Conv {
    mx::array w, b;
  };

  Level take_level(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name,
      int inputs,
      bool skip);
  Block take_block(
      Weights& weights,
      const std::string& name,
      int inputs,
      int channels);
  Conv take_conv(Weights& weights, const std::string& name, int channels);

  // [rows, 4 * mels] → [rows, time_channels]
  mx::array embed_times(const std::vector<float>& times) const;

  mx::array run(
      const Level& level,
      const mx::array& x,
      const std::optional<mx::array>& skip,
      const mx::array& shift) const;
  mx::array run(
      const Resnet& resnet,
      const mx::array& x,
      const std::optional<mx::array>& skip,
      const mx::array& shift) const;
  mx::array run(const Transformer& transformer, const mx::array& x) const;
  mx::array run(const Conv& conv, const mx::array& x) const;

  int channels_, heads_;
  mx::Stream stream_;
  mx::Dtype product_;
  std::vector<Level> levels_; // down, middle, up
  Conv down_, up_;
  Block final_;
  mx::array mel_w_, mel_b_;
  mx::array time_in_w_, time_in_b_;
  mx::array time_out_w_, time_out_b_;
  std::optional<mx::array> time_mixer_; // of a step's start and end
  mx::array shift_w_, shift_b_; // of all levels, one below the other
};

} // namespace nightingale
