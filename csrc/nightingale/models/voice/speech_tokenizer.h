#pragma once

#include <string>
#include <vector>

#include "nightingale/models/weights.h"
#include "nightingale/ops/backend.h"

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
    mx::array attention_norm_w, attention_norm_b;
    mx::array qkv_w, qkv_b;
    mx::array memory_w; // a filter over time for every channel of the values
    mx::array out_w, out_b;
    mx::array ffn_norm_w, ffn_norm_b;
    mx::array up_w, up_b;
    mx::array down_w, down_b;
  };

  SpeechTokenizer(Weights& weights, const Config& config, mx::Stream s);

  static Layer
  take_layer(Weights& weights, const Config& config, std::string name);

  mx::array run(const Layer& layer, const mx::array& x) const;

  int width_;
  mx::Stream stream_;
  mx::array frequencies_;
  mx::array first_w_, first_b_;
  mx::array second_w_, second_b_;
  std::vector<Layer> layers_;
  mx::array code_w_, code_b_;
};

} // namespace nightingale
