#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nightingale/models/s3gen/config.h"
#include "nightingale/models/weights.h"
#include "nightingale/ops/eval_throttle.h"
#include "nightingale/ops/feed_forward.h"
#include "nightingale/ops/ode.h"
#include "nightingale/ops/resnet.h"

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
  // Matrices and kernels quantized to `bits`, in floats where that is 0.
  Estimator(Weights& weights, const FlowConfig& config, int bits, mx::Stream s);

  // The times of `steps` steps from noise to mel: along a cosine, or even ones
  // for a meanflow. Those last asked for are kept.
  FlowTimes times(int steps) const;

  // The type of the input buffer of `velocity`.
  mx::Dtype input_dtype() const {
    return product_;
  }

  // state.input: [B, frames, 4 * mels]: the flow's state, the encoder's mean,
  // the speaker, the prompt's mel → [B, frames, mels] float32
  mx::array velocity(
      const ops::OdeState& state,
      const std::vector<mx::array>& shifts,
      ops::EvalThrottle& throttle) const;

 private:
  struct Transformer {
    ops::LayerNorm attention_norm;
    ops::Matrix qkv;
    ops::FeedForward feed_forward;
  };
  struct Level {
    ops::Resnet resnet;
    std::vector<Transformer> transformers;
  };

  Level take_level(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name,
      int inputs,
      bool skip);
  Transformer take_transformer(
      Weights& weights,
      const FlowConfig& config,
      const std::string& name);
  ops::Matrix take_matrix(
      Weights& weights,
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      mx::Dtype dtype) const;
  // Weights of `name`weight and `name`bias.
  ops::CausalConv
  take_conv(Weights& weights, const std::string& name, int inputs);
  ops::LayerNorm take_norm(Weights& weights, const std::string& name);

  FlowTimes compute_times(int steps) const;
  // [rows, 4 * mels] → [rows, time_channels]
  mx::array embed_times(const std::vector<float>& times) const;

  // Arrays of frames, as in nightingale/ops/resnet.h.
  mx::array run(
      const Level& level,
      const ops::FrameInput& x,
      const mx::array& shift) const;

  int channels_, heads_;
  int bits_;
  mx::Stream stream_;
  mx::Dtype product_;
  std::vector<Level> levels_; // down, middle, up
  ops::CausalConv down_, up_, final_;
  ops::LayerNorm final_norm_;
  ops::Matrix mel_w_;
  mx::array mel_b_;
  ops::Matrix time_in_w_;
  mx::array time_in_b_;
  ops::Matrix time_out_w_;
  mx::array time_out_b_;
  std::optional<ops::Matrix> time_mixer_; // of a step's start and end
  ops::Matrix shift_w_; // of all levels, one below the other
  mx::array shift_b_;

  struct KeptTimes {
    std::mutex mutex;
    FlowTimes times;
  };
  std::unique_ptr<KeptTimes> kept_times_ = std::make_unique<KeptTimes>();
};

} // namespace nightingale
