#pragma once

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

  // samples: [n] at 16 kHz. At most `max_tokens`, where it is above 0.
  std::vector<int> tokens(const mx::array& samples, int max_tokens = 0) const;

  // What is rounded to -1, 0 or 1 to make the tokens' digits.
  // mel: tokenizer_mel of a recording, at most 30 s → [tokens, 8]
  mx::array code(const mx::array& mel) const;

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

  int width_;
  mx::Stream stream_;
  mx::array frequencies_;
  Convolution first_, second_;
  std::vector<Layer> layers_;
  Linear code_;
};

} // namespace nightingale
