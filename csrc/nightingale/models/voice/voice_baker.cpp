#include "nightingale/models/voice/voice_baker.h"

#include <algorithm>
#include <cmath>

#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/models/voice/features.h"
#include "nightingale/models/voice/recording.h"

namespace nightingale {

namespace {

constexpr int kFlowPromptSeconds = 10;
constexpr int kTokenSamples = kBakeRate / 25; // of a speech token

// Other models' tensors in the S3Gen file; the tokenizer looks at its own.
const std::vector<std::string> kNotBaking{"flow.*", "mel2wav.*", "tokenizer.*"};
const std::vector<std::string> kTrainingOnly{
    "similarity_weight",
    "similarity_bias"};

// The first `count` samples, or all of fewer.
mx::array first(const std::vector<float>& samples, int count) {
  int length = std::min<size_t>(samples.size(), count);
  return mx::array(samples.begin(), {length});
}

void check(const std::vector<float>& samples) {
  require(!samples.empty(), "the recording has no samples");
  require(
      std::ranges::all_of(samples, [](float x) { return std::isfinite(x); }),
      "the recording holds values that are not finite");
}

} // namespace

VoiceBaker::VoiceBaker(
    Weights& s3gen,
    Weights& voice_encoder,
    std::shared_ptr<const SpeechTokenizer> tokenizer,
    mx::Stream s)
    : stream_(s),
      tokenizer_(std::move(tokenizer)),
      speaker_encoder_(s3gen, s),
      voice_encoder_(voice_encoder, s),
      weight_bytes_(
          tokenizer_->weight_bytes() + s3gen.nbytes() +
          voice_encoder.nbytes()) {}

VoiceBaker VoiceBaker::load(
    std::shared_ptr<const TensorFile> s3gen_file,
    std::shared_ptr<const TensorFile> voice_encoder_file,
    mx::Stream s,
    std::vector<std::string>* unknown,
    std::shared_ptr<const SpeechTokenizer> tokenizer) {
  std::vector<std::string> found;
  if (!tokenizer) {
    tokenizer = std::make_shared<const SpeechTokenizer>(
        SpeechTokenizer::load(s3gen_file, s, &found));
  }
  // In float32 whatever the files have: a voice is baked once and kept.
  Weights s3gen(std::move(s3gen_file), mx::float32);
  Weights voice_encoder(std::move(voice_encoder_file), mx::float32);
  VoiceBaker baker(s3gen, voice_encoder, std::move(tokenizer), s);
  if (unknown) {
    for (auto& others :
         {s3gen.unused(kNotBaking), voice_encoder.unused(kTrainingOnly)}) {
      found.insert(found.end(), others.begin(), others.end());
    }
    std::erase_if(found, [](const std::string& name) {
      return name.ends_with(".num_batches_tracked");
    });
    *unknown = std::move(found);
  }
  return baker;
}

FlowVoice VoiceBaker::flow_voice(const std::vector<float>& at_24k) const {
  auto heard = first(at_24k, kFlowPromptSeconds * kPromptRate);
  auto mel = prompt_mel(heard, stream_);
  auto resampled = resample_to_bake_rate(heard, stream_);
  mx::eval(mel, resampled);

  FlowVoice voice;
  voice.prompt_mel.assign(mel.data<float>(), mel.data<float>() + mel.size());
  voice.prompt_tokens = tokenizer_->tokens(resampled);
  size_t whole_tokens = mel.shape(0) / kFramesPerToken;
  if (voice.prompt_tokens.size() > whole_tokens) {
    voice.prompt_tokens.resize(whole_tokens);
  }
  voice.speaker = speaker_encoder_.embedding(resampled);
  return voice;
}

BakedVoice VoiceBaker::bake(const Recording& recording, int prompt_tokens)
    const {
  check(recording.at_24k);
  check(recording.at_16k);
  auto opening = first(recording.at_16k, prompt_tokens * kTokenSamples);
  BakedVoice voice;
  voice.t3.speaker = voice_encoder_.embedding(recording.at_16k);
  voice.t3.prompt_tokens = tokenizer_->tokens(opening, prompt_tokens);
  voice.flow = flow_voice(recording.at_24k);
  ops::release_idle_memory(stream_);
  return voice;
}

} // namespace nightingale
