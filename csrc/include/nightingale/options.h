// Written by tools/generate_options.py from options.py; do not edit.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace nightingale {

// Which numbers an option takes; without bounds, any.
struct OptionRange {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false; // `least` itself is refused
};

// How a model is loaded; what is not set stays as the files have it.
struct LoadOptions {
  // how multilingual models sample: chatterbox-0.1.7 has the alignment analyser
  // and a repetition penalty of 2.0, upstream no analyser and 1.2; not set:
  // chatterbox-0.1.7 for v1 and v2, upstream for later models
  std::optional<std::string> preset;
  // bits of T3's quantized weights; on the CPU S3Gen's are quantized to 8 bits
  // as well; not set: as in the files
  std::optional<int> bits;
  // type of the weights; not set: as in the files; float16 for T3 with bits
  std::optional<std::string> dtype;
  // bits of T3's quantized KV cache; not set: 8 with quantized weights, else
  // the type of the weights
  std::optional<int> kv_bits;
  // share of the speech that the KV cache keeps, on a CPU; not set: all of it
  std::optional<float> kv_budget;
  // where the model runs; auto takes a GPU where MLX has one
  std::string device = "auto";
  // threads of the CPU backend, for the whole process; not set: all cores
  std::optional<int> threads;

  // Calls visit(name, member, range) for each option.
  template <typename Visit>
  static void each(Visit visit) {
    // clang-format off
    visit("preset", &LoadOptions::preset, OptionRange{});
    visit("bits", &LoadOptions::bits, OptionRange{});
    visit("dtype", &LoadOptions::dtype, OptionRange{});
    visit("kv_bits", &LoadOptions::kv_bits, OptionRange{});
    visit("kv_budget", &LoadOptions::kv_budget, OptionRange{.least = 0.0, .most = 1.0, .above = true});
    visit("device", &LoadOptions::device, OptionRange{});
    visit("threads", &LoadOptions::threads, OptionRange{.least = 1.0, .most = 1024.0});
    // clang-format on
  }
};

// How a text is spoken; what is not set is the model's own value, or the
// voice's.
struct SpeechOptions {
  // code of the language, such as fr or fr-CA; auto: that of the text
  std::string language = "en";
  // another seed gives another reading; the same seed and options give the same
  // audio
  uint64_t seed = 0;
  // speaking rate; the pitch stays
  float speed = 1.0f;
  // randomness of the speech tokens; 0 always takes the most likely token
  float temperature = 0.8f;
  // weight of classifier-free guidance: how closely the text is followed; 0
  // turns it off
  float cfg_weight = 0.5f;
  // strength of the emotion; 0.5 is neutral, more is livelier
  float exaggeration = 0.5f;
  // penalty for speech tokens that were used before; 1 is none
  float repetition_penalty = 1.2f;
  // minimum probability relative to the most likely token (min-p)
  float min_p = 0.05f;
  // cumulative probability of the tokens that are sampled from (top-p)
  float top_p = 1.0f;
  // number of the most likely tokens that are sampled from (top-k); 0 is all
  int top_k = 0;
  // speech tokens per sentence at most, 25 per second
  int max_tokens = 1000;
  // steps of the flow; fewer are faster
  int steps = 10;
  // speech tokens in the first chunk of a sentence, more than overlap; fewer
  // are heard sooner; not set: sentences are not divided
  std::optional<int> first_chunk = 10;
  // speech tokens in the second chunk; each later one is half as long again, up
  // to 100
  int chunk = 25;
  // speech tokens that are solved again where two chunks meet
  int overlap = 4;
  // earlier speech tokens that the solution of a chunk sees; not set: the whole
  // sentence
  std::optional<int> context;

  // Calls visit(name, member, range) for each option.
  template <typename Visit>
  static void each(Visit visit) {
    // clang-format off
    visit("language", &SpeechOptions::language, OptionRange{});
    visit("seed", &SpeechOptions::seed, OptionRange{.least = 0.0, .most = 1.8446744073709552e+19});
    visit("speed", &SpeechOptions::speed, OptionRange{.least = 0.25, .most = 4.0});
    visit("temperature", &SpeechOptions::temperature, OptionRange{.least = 0.0});
    visit("cfg_weight", &SpeechOptions::cfg_weight, OptionRange{.least = 0.0});
    visit("exaggeration", &SpeechOptions::exaggeration, OptionRange{.least = 0.0});
    visit("repetition_penalty", &SpeechOptions::repetition_penalty, OptionRange{.least = 0.0, .above = true});
    visit("min_p", &SpeechOptions::min_p, OptionRange{.least = 0.0, .most = 1.0});
    visit("top_p", &SpeechOptions::top_p, OptionRange{.least = 0.0, .most = 1.0});
    visit("top_k", &SpeechOptions::top_k, OptionRange{.least = 0.0});
    visit("max_tokens", &SpeechOptions::max_tokens, OptionRange{.least = 1.0});
    visit("steps", &SpeechOptions::steps, OptionRange{.least = 1.0, .most = 1000.0});
    visit("first_chunk", &SpeechOptions::first_chunk, OptionRange{.least = 1.0, .most = 1000.0});
    visit("chunk", &SpeechOptions::chunk, OptionRange{.least = 1.0, .most = 1000.0});
    visit("overlap", &SpeechOptions::overlap, OptionRange{.least = 1.0, .most = 100.0});
    visit("context", &SpeechOptions::context, OptionRange{.least = 1.0, .most = 1000000.0});
    // clang-format on
  }
};

} // namespace nightingale
