#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nightingale/engine/chunk_ends.h"
#include "nightingale/engine/model.h"
#include "nightingale/ops/lanes.h"

namespace nightingale {

constexpr int kSampleRate = 24000;
constexpr int kFrameSamples = 480;
constexpr int kTokenSamples = kFramesPerToken * kFrameSamples;

// How the sound of one sentence is made.
struct SoundRequest {
  std::shared_ptr<const FlowVoice> voice;
  SpeechOptions options; // resolved
  double speed = 1; // the option, with all its digits
  uint32_t sentence = 0; // which one of a longer text: part of the draws
  std::optional<std::vector<int>> cuts; // none: as the options divide it
  bool drop_last_token = true; // its sound is often a click or a breath
};

// The sound of one sentence, made while its tokens come.
//
// A chunk's frames are solved with some tokens of look-ahead, as many as the
// model asks for. Those of its last `overlap` tokens are kept back and soon
// give way to what the next chunk, which sees more, makes of them. The vocoder
// takes only frames that will not change; what it would say next is heard from
// a copy of its state, which knows the frames that may, and fades into what it
// does say.
//
// `begin` and `step` are called in a turn of the scheduler: they may compute
// steps of others' solutions, and others of its own.
class SentenceSound {
 public:
  SentenceSound(std::shared_ptr<const Model> model, SoundRequest request);

  // The scheduler's.
  std::mutex& turn() const {
    return model_->scheduler->turn();
  }

  // Whether the next chunk can be made of so many tokens, with more to come.
  bool ready(int tokens) const;

  // How many more tokens than these the next chunk takes that has not been
  // begun; a second's where the sentence is not divided.
  int missing(int tokens) const;

  // Begins the next chunk of the sentence's tokens so far, by `step` or `make`.
  // last: it is what is left of the sentence.
  void begin(std::vector<int> tokens, bool last);

  // Whether a chunk has been begun and not been given.
  bool busy() const {
    return solving_.has_value();
  }

  // Begins the solution of the chunk that was begun; none where it has no
  // frames to solve.
  std::shared_ptr<Solution> solution();

  // One step of the flow; after the last one, the samples of the chunk. Throws
  // NotFinite.
  std::optional<std::vector<float>> step();

  // All steps of the chunk that was begun, in a lane and in no turn of the
  // scheduler; ends early where `work` is dropped.
  std::vector<float> make(const mx::Stream& s, const ops::LaneWork& work);

  // Frees the frames of the mel that neither the vocoder nor a later chunk
  // looks at.
  void forget();

  // Tokens that have been solved.
  int solved() const {
    return solved_;
  }
  // Samples that chunks have had.
  int64_t sent() const {
    return sent_;
  }
  // Every frame that was not forgotten: [frames, mels]
  const std::vector<float>& mel() const {
    return mel_;
  }
  double flow_seconds() const {
    return flow_seconds_;
  }
  double vocoder_seconds() const {
    return vocoder_seconds_;
  }

 private:
  // A solution under way.
  struct Solving {
    int tokens; // of the sentence, so far
    int end; // the token up to which it is solved
    int first_frame; // of the sentence, that the solution has
    bool last;
    std::optional<MelRequest> request; // until the solution is begun
    std::shared_ptr<Solution> solution; // none where no frame is to be made
  };

  void solve(std::shared_ptr<const Flow> flow);
  std::vector<float> chunk(const Vocoder& vocoder);
  std::vector<float> solved_frames();
  void settle(std::vector<float> frames);
  std::vector<float> sound(const Vocoder& vocoder, bool last);
  std::vector<float> feed(const Vocoder& vocoder, int frames, bool last);
  std::vector<float> vocode(
      const Vocoder& vocoder,
      VocoderState& state,
      const std::vector<float>& frames,
      bool last) const;
  std::vector<float> crossed(std::vector<float> samples) const;

  std::shared_ptr<const Model> model_;
  SoundRequest request_;
  ChunkEnds ends_;
  int prompt_excess_; // frames of the prompt's mel beyond those of its tokens
  std::optional<Solving> solving_;
  std::vector<float> mel_;
  int first_ = 0; // which frame of the sentence is the first of them
  int settled_ = 0; // frames that will not change
  int solved_ = 0;
  VocoderState vocoder_;
  int vocoded_ =
      0; // frames, at the speed asked for, that the vocoder has taken
  int64_t sounded_ = 0; // samples it has given
  int64_t sent_ = 0;
  std::vector<float> held_; // what the last chunk had to say after them
  double flow_seconds_ = 0;
  double vocoder_seconds_ = 0;
};

} // namespace nightingale
