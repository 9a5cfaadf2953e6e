#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "nightingale/models/s3gen/estimator.h"
#include "nightingale/models/s3gen/token_encoder.h"

namespace nightingale {

// What a voice gives to the flow.
struct FlowVoice {
  std::vector<int> prompt_tokens;
  std::vector<float> prompt_mel; // [frames, mels]
  std::vector<float> speaker; // x-vector

  int prompt_frames() const {
    return prompt_mel.size() / kMels;
  }
};

struct MelRequest {
  std::vector<int> tokens; // sound only
  FlowVoice voice;
  int steps = 10;
  bool finalize = true; // false: more tokens follow, the last three are context
  uint64_t seed = 0;
  uint32_t sentence = 0;
  // Which of the sentence's frames the first new one is, where the tokens begin
  // in its middle: part of the draws.
  int first_frame = 0;
  float temperature = 1; // what the seed's noise is multiplied with
  // The noise to start from in place of the seed's: [all frames, mels]
  std::optional<std::vector<float>> noise = std::nullopt;
};

// A mel on its way from noise.
struct MelState {
  FlowTimes times;
  int prompt_frames;
  int done = 0; // steps
  ops::OdeState ode; // of the prompt's and the new frames
  ops::EvalThrottle throttle;

  bool finished() const {
    return done == static_cast<int>(times.spans.size());
  }
};

// Speech tokens and a voice to mel frames. Const after loading.
class Flow {
 public:
  // Matrices as `dtype`, or as the file has them; on the CPU
  // quantized where `bits` is not 0 or the file is quantized (s3gen_bits).
  // Names of tensors that are neither the flow's nor another part's are put in
  // `unknown`.
  static Flow load(
      std::shared_ptr<const TensorFile> file,
      std::optional<mx::Dtype> dtype,
      mx::Stream s,
      std::vector<std::string>* unknown,
      int bits = 0);

  // The same weights for ops on `s`, a stream of the same device.
  Flow on(mx::Stream s) const;

  const FlowConfig& config() const {
    return config_;
  }
  size_t weight_bytes() const {
    return weight_bytes_;
  }
  const LayerFormat& format() const {
    return format_;
  }
  const mx::Stream& stream() const {
    return stream_;
  }
  // The type in which the estimator multiplies.
  mx::Dtype product_dtype() const {
    return estimator_.input_dtype();
  }
  // New frames that a request gives; an error where its parts do not fit.
  int new_frames(const MelRequest& request) const;

  // The encoder's mean of the prompt's and the new frames: [1, frames, mels]
  mx::array encode(const MelRequest& request) const;

  // begin, step until finished, finish: the new frames, [frames, mels]. A step
  // on a GPU may still be under way when it returns.
  MelState begin(const MelRequest& request) const;
  void step(MelState& state) const;
  mx::array finish(MelState&& state) const;

  // A step of each of several solutions, which may differ in length and in the
  // steps done. On a GPU they take less time together than one after another.
  // Where it throws, those whose `done` has not changed can be stepped again,
  // and the others are lost.
  void step(std::span<MelState* const> states) const;

 private:
  Flow(const LayerReader& flow, const FlowConfig& config);

  void check(const MelRequest& request) const;
  // The first `frames` frames of the encoder's mean: [1, frames, mels]
  mx::array mean(const MelRequest& request, int frames) const;
  mx::array noise(const MelRequest& request, int new_frames) const;
  mx::array speaker(const std::vector<float>& embedding) const; // [mels]

  FlowConfig config_;
  LayerFormat format_;
  size_t weight_bytes_ = 0;
  mx::Stream stream_;
  Linear speaker_;
  TokenEncoder encoder_;
  Estimator estimator_;
};

// Tokens as the flow takes them: those after the first start token, up to the
// first stop token, without ids that are not sound, which are counted.
struct SoundTokens {
  std::vector<int> tokens;
  int dropped = 0;
};
SoundTokens sound_tokens(const std::vector<int>& tokens);

} // namespace nightingale
