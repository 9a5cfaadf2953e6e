#pragma once

#include <string>
#include <vector>

#include "nightingale/models/s3gen/flow.h"
#include "nightingale/models/t3/conditioning.h"
#include "nightingale/models/voice/speaker_encoder.h"
#include "nightingale/models/voice/speech_tokenizer.h"
#include "nightingale/models/voice/voice_encoder.h"

namespace nightingale {

// One recording, mono, at both rates that the models hear.
struct Recording {
  std::vector<float> at_24k;
  std::vector<float> at_16k;
};

struct BakedVoice {
  T3Voice t3;
  FlowVoice flow;
};

// Makes a voice of a recording. Const after loading.
class VoiceBaker {
 public:
  // Names of tensors that none of the models knows are put in `unknown`.
  // tokenizer: of the same file, where it is loaded already.
  static VoiceBaker load(
      std::shared_ptr<const TensorFile> s3gen_file,
      std::shared_ptr<const TensorFile> voice_encoder_file,
      mx::Stream s,
      std::vector<std::string>* unknown,
      std::shared_ptr<const SpeechTokenizer> tokenizer = nullptr);

  // T3's prompt are the first `prompt_tokens`, 25 a second; the flow's are the
  // first 10 s; the voice encoder hears all of it.
  BakedVoice bake(const Recording& recording, int prompt_tokens) const;

  size_t weight_bytes() const {
    return weight_bytes_;
  }

 private:
  VoiceBaker(
      Weights& s3gen,
      Weights& voice_encoder,
      std::shared_ptr<const SpeechTokenizer> tokenizer,
      mx::Stream s);

  FlowVoice flow_voice(const std::vector<float>& at_24k) const;

  mx::Stream stream_;
  std::shared_ptr<const SpeechTokenizer> tokenizer_;
  SpeakerEncoder speaker_encoder_;
  VoiceEncoder voice_encoder_;
  size_t weight_bytes_;
};

} // namespace nightingale
