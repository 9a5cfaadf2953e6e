#include "nightingale/models/t3/config.h"

#include "nightingale/error.h"

namespace nightingale {

namespace {

void read_llama(const TensorFile& file, T3Config& config) {
  config.layers = count_layers(file, "tfmr.layers.");
  config.ffn = config.layers == 0
      ? 0
      : size_of(file, "tfmr.layers.0.mlp.gate_proj.weight", 2, 0);
  config.text_positions = size_of(file, "text_pos_emb.emb.weight", 2, 0);
  config.speech_positions = size_of(file, "speech_pos_emb.emb.weight", 2, 0);
  config.positions = 0;
  config.perceiver_queries =
      size_of(file, "cond_enc.perceiver.pre_attention_query", 3, 1);
}

// Voice, text and speech share one table of positions: half of it is for the
// speech, a quarter for the text.
void read_gpt2(const TensorFile& file, T3Config& config) {
  config.layers = count_layers(file, "tfmr.h.");
  config.ffn =
      config.layers == 0 ? 0 : size_of(file, "tfmr.h.0.mlp.c_fc.bias", 1, 0);
  config.positions = size_of(file, "tfmr.wpe.weight", 2, 0);
  config.text_positions = config.positions / 4;
  config.speech_positions = config.positions / 2;
  config.perceiver_queries = 0;
}

void check(
    const T3Config& config,
    const TensorFile& file,
    const std::string& settings_of) {
  auto fail = [&](const std::string& what) {
    throw Error(file.path() + " is not a T3 checkpoint: " + what);
  };
  if (config.layers == 0) {
    fail("it has no tensors named tfmr.layers.* or tfmr.h.*");
  }
  if (config.hidden == 0 || config.hidden % kHeadDim != 0) {
    fail(
        "hidden size " + std::to_string(config.hidden) +
        " is not a multiple of the head size " + std::to_string(kHeadDim));
  }
  if (config.traits().text_frame > 0 && config.text_vocabulary <= kStartText) {
    fail(
        "text vocabulary " + std::to_string(config.text_vocabulary) +
        " has no start token " + std::to_string(kStartText));
  }
  if (config.speech_vocabulary <= kStopSpeech) {
    fail(
        "speech vocabulary " + std::to_string(config.speech_vocabulary) +
        " has no stop token " + std::to_string(kStopSpeech));
  }
  for (auto [layer, head] : config.settings.alignment_heads) {
    if (layer < 0 || layer >= config.layers || head < 0 ||
        head >= config.heads()) {
      throw Error(
          "alignment head [" + std::to_string(layer) + ", " +
          std::to_string(head) + "] does not exist: the model has " +
          std::to_string(config.layers) + " layers of " +
          std::to_string(config.heads()) +
          " heads; set t3.alignment_heads in nightingale.json beside " +
          settings_of);
    }
  }
  if (config.settings.analyser && config.settings.alignment_heads.empty()) {
    throw Error("t3.analyser is on but t3.alignment_heads is empty");
  }
}

} // namespace

T3Config T3Config::of(
    const TensorFile& file,
    const std::string& settings_of,
    const std::optional<std::string>& preset) {
  T3Config config;
  bool gpt2 = count_layers(file, "tfmr.h.") > 0;
  config.backbone = gpt2 ? BackboneKind::gpt2 : BackboneKind::llama;
  config.hidden = size_of(file, "speech_emb.weight", 2, 1);
  config.text_vocabulary = size_of(file, "text_emb.weight", 2, 0);
  config.speech_vocabulary = size_of(file, "speech_emb.weight", 2, 0);
  config.speaker_size = size_of(file, "cond_enc.spkr_enc.weight", 2, 1);
  (gpt2 ? read_gpt2 : read_llama)(file, config);
  bool multilingual = is_multilingual(settings_of, config.text_vocabulary);
  config.settings = T3Settings::for_file(settings_of, multilingual, preset);
  check(config, file, settings_of);
  return config;
}

bool t3_transposed(const std::string& name) {
  return name.starts_with("tfmr.h.") &&
      (name.ends_with(".c_attn.weight") || name.ends_with(".c_proj.weight") ||
       name.ends_with(".c_fc.weight"));
}

int t3_bits(const std::string& name, int bits) {
  if (bits == 0) {
    return 0;
  }
  if (name == "speech_head.weight") {
    return 8;
  }
  bool llama =
      name.starts_with("tfmr.layers.") && name.ends_with("_proj.weight");
  return llama || t3_transposed(name) ? bits : 0;
}

} // namespace nightingale
