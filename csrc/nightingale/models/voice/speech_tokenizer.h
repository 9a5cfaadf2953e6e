#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nightingale/models/layers.h"

namespace nightingale {

// S3TokenizerV2: sound to the speech tokens that T3 and the flow know, 25 a
// second. Const after loading.
class SpeechTokenizer {
 public:
  // Reads the tensors "tokenizer.*" of an S3Gen checkpoint.
  SpeechTokenizer(Weights& weights, mx::Stream s);

  // Names of tensors "tokenizer.*" that are not known are put in `unknown`.
  static SpeechTokenizer load(
      std::shared_ptr<const TensorFile> s3gen_file,
      mx::Stream s,
      std::vector<std::string>* unknown);

  // samples: [n] at 16 kHz. At most `max_tokens`, where it is above 0.
  std::vector<int> tokens(const mx::array& samples, int max_tokens = 0) const;

  // A recording that is heard part by part has its loudest value found first.
  // samples: [n] → tokenizer_log_mel of them
  mx::array log_mel(const mx::array& samples) const;
  // log_mel: [n, 128] of a part, 30 s at most; loudest: of the whole recording.
  std::vector<int> tokens_of(const mx::array& log_mel, float loudest) const;

  // What is rounded to -1, 0 or 1 to make the tokens' digits.
  // mel: tokenizer_mel of a recording, at most 30 s → [tokens, 8]
  mx::array code(const mx::array& mel) const;

  size_t weight_bytes() const {
    return weight_bytes_;
  }

 private:
  // Sizes as the tensors have them.
  struct Config {
    int width, ffn, layers;

    static Config of(const TensorFile& file);
  };
  struct Layer {
    ops::LayerNorm attention_norm;
    Linear qkv;
    ops::Kernel memory_w; // a filter over time for every channel of the values
    Linear out;
    ops::LayerNorm ffn_norm;
    Linear up, down;

    Layer(const LayerReader& block, const Config& config);
  };

  SpeechTokenizer(const LayerReader& reader, const Config& config);

  mx::array run(const Layer& layer, const mx::array& x) const;
  std::vector<int> rounded(const mx::array& mel) const;

  size_t weight_bytes_ = 0;
  int width_;
  mx::Stream stream_;
  mx::array frequencies_;
  Convolution first_, second_;
  std::vector<Layer> layers_;
  Linear code_;
};

} // namespace nightingale
