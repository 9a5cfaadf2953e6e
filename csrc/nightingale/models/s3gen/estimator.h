#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/layers.h"
#include "nightingale/models/s3gen/config.h"
#include "nightingale/ops/eval_throttle.h"
#include "nightingale/ops/shared_frames.h"

namespace nightingale {

// What the estimator is told about time, for every step of one solution: the
// vector that each level adds to its channels.
struct FlowTimes {
  struct Shifts {
    mx::array all; // [levels, channels]
    std::vector<mx::array> levels; // its rows: [channels]
  };

  std::vector<float> spans; // how far each step goes
  std::vector<Shifts> shifts; // of each step
};

// The velocity of the flow: a causal U-Net whose levels are a residual
// convolution and transformers over all frames.
class Estimator {
 public:
  Estimator(const LayerReader& reader, const FlowConfig& config);

  // The same weights for ops on `s`.
  Estimator on(mx::Stream s) const;

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
    const FlowTimes::Shifts& shifts;
    ops::EvalThrottle& throttle;
  };

  // The velocity at each point, [B, frames, mels] float32, as it is alone. On a
  // GPU, points with about as many frames are rows of the same arrays where the
  // kernels allow it. All graphs are evaluated in parts of the same levels.
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
  using Points = std::vector<const Point*>;
  // Points that go through the levels as one array.
  struct Pass {
    Points points;
    ops::FrameInput input;
    std::vector<mx::array> shifts; // of each level
  };

  // Those that share a pass, in any order.
  std::vector<Points> groups(const std::vector<Point>& points) const;
  Pass pass(const Points& points) const;
  // [B, frames, mels] of each pass
  std::vector<mx::array> run(const std::vector<Pass>& passes) const;

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
      const ops::FrameLayout& layout) const;

  ops::FrameNetwork network() const;

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
  bool can_share_ = false;

  struct KeptTimes {
    std::mutex mutex;
    FlowTimes times;
  };
  std::shared_ptr<KeptTimes> kept_times_ = std::make_shared<KeptTimes>();
};

} // namespace nightingale
