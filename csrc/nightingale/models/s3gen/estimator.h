#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/layers.h"
#include "nightingale/models/s3gen/config.h"
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
  Estimator(const LayerReader& reader, const FlowConfig& config);

  // The times of `steps` steps from noise to mel: along a cosine, or even ones
  // for a meanflow. Those last asked for are kept.
  FlowTimes times(int steps) const;

  // The type of the input buffer of `velocity`.
  mx::Dtype input_dtype() const {
    return product_;
  }

  // What the velocity of one solution depends on.
  struct Point {
    // input: [B, frames, 4 * mels]: the flow's state, the encoder's mean, the
    // speaker, the prompt's mel
    const ops::OdeState& state;
    const std::vector<mx::array>& shifts;
    ops::EvalThrottle& throttle;
  };

  // The velocity at each point, [B, frames, mels] float32. The graphs of all
  // points are evaluated in parts of the same levels.
  std::vector<mx::array> velocities(const std::vector<Point>& points) const;

 private:
  struct Transformer {
    ops::LayerNorm attention_norm;
    ops::Matrix qkv;
    ops::FeedForward feed_forward;

    Transformer(const LayerReader& block, const FlowConfig& config);
  };
  struct Level {
    ops::Resnet resnet;
    std::vector<Transformer> transformers = {};
  };

  FlowTimes compute_times(int steps) const;
  // [rows, 4 * mels] → [rows, time_channels]
  mx::array embed_times(const std::vector<float>& times) const;

  // Arrays of frames, as in nightingale/ops/resnet.h.
  mx::array run(
      const Level& level,
      const ops::FrameInput& x,
      const mx::array& shift) const;
  mx::array last_level(
      const mx::array& input,
      const mx::array& skip,
      const mx::array& shift,
      int batch) const;

  int channels_, heads_;
  mx::Stream stream_;
  mx::Dtype product_;
  std::vector<Level> levels_; // down, middle, up
  ops::CausalConv down_, up_, final_;
  ops::LayerNorm final_norm_;
  Linear mel_;
  Linear time_in_, time_out_;
  std::optional<ops::Matrix> time_mixer_; // of a step's start and end
  Linear shift_; // of all levels, one below the other

  struct KeptTimes {
    std::mutex mutex;
    FlowTimes times;
  };
  std::unique_ptr<KeptTimes> kept_times_ = std::make_unique<KeptTimes>();
};

} // namespace nightingale
