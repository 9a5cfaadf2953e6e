#include "nightingale/models/t3/config.h"

#include <cmath>
#include <filesystem>

#include "nightingale/error.h"
#include "nightingale/io/json.h"

namespace nightingale {

namespace {

namespace fs = std::filesystem;

T3Settings built_in(const std::string& file_name) {
  const std::vector<AlignmentHead> official{{12, 15}, {13, 11}, {9, 2}};
  T3Settings settings;
  if (file_name == "t3_mtl23ls_v2.safetensors" ||
      file_name == "t3_mtl23ls_v2.pt" || file_name == "t3_23lang.safetensors") {
    settings.alignment_heads = official;
    settings.analyser = true;
    settings.repetition_penalty = 2.0f;
  } else if (
      file_name == "t3_mtl23ls_v3.safetensors" ||
      file_name == "t3_mtl23ls_v3.pt") {
    settings.alignment_heads = official;
    settings.repetition_penalty = 2.0f;
  }
  return settings;
}

// Far above what either can sensibly be.
constexpr uint64_t kMostSettingsBytes = 1 << 20;
constexpr size_t kMostAlignmentHeads = 64;

std::string read_text(const std::string& path) {
  InputFile file(path);
  if (file.size() > kMostSettingsBytes) {
    file.fail(
        "the file has " + std::to_string(file.size()) +
        " bytes, expected at most " + std::to_string(kMostSettingsBytes));
  }
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size(), "the text");
  return text;
}

std::vector<AlignmentHead> read_heads(
    const Json& value,
    const std::string& what) {
  std::vector<AlignmentHead> heads;
  const auto& pairs = value.array(what);
  if (pairs.size() > kMostAlignmentHeads) {
    throw Error(
        what + " lists " + std::to_string(pairs.size()) +
        " heads, expected at most " + std::to_string(kMostAlignmentHeads));
  }
  for (const Json& pair : pairs) {
    const auto& numbers = pair.array(what + " entry");
    if (numbers.size() != 2) {
      throw Error(what + ": each entry must be [layer, head]");
    }
    heads.push_back(
        {numbers[0].integer(what + " layer"),
         numbers[1].integer(what + " head")});
  }
  return heads;
}

float read_penalty(const Json& value, const std::string& what) {
  float penalty = static_cast<float>(value.number(what));
  if (!std::isfinite(penalty) || penalty <= 0.0f) {
    throw Error(what + " must be above 0");
  }
  return penalty;
}

// Overrides `settings` by the object `t3` of the file named in `what`.
void apply(const Json& t3, const std::string& what, T3Settings& settings) {
  for (const auto& [key, value] : t3.object(what)) {
    std::string name = what + "." + key;
    if (key == "analyser") {
      settings.analyser = value.boolean(name);
    } else if (key == "stop_at_repeat") {
      settings.stop_at_repeat = value.boolean(name);
    } else if (key == "alignment_heads") {
      settings.alignment_heads = read_heads(value, name);
    } else if (key == "repetition_penalty") {
      settings.repetition_penalty = read_penalty(value, name);
    } else {
      throw Error(
          name +
          " is not a setting; known are analyser, alignment_heads, "
          "repetition_penalty and stop_at_repeat");
    }
  }
}

void check(
    const T3Config& config,
    const TensorFile& file,
    const std::string& settings_of) {
  auto fail = [&](const std::string& what) {
    throw Error(file.path() + " is not a T3 checkpoint: " + what);
  };
  if (config.layers == 0) {
    fail("it has no tensors named tfmr.layers.*");
  }
  if (config.hidden == 0 || config.hidden % kHeadDim != 0) {
    fail(
        "hidden size " + std::to_string(config.hidden) +
        " is not a multiple of the head size " + std::to_string(kHeadDim));
  }
  if (config.text_vocabulary <= kStartText) {
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

T3Settings T3Settings::for_file(const std::string& path) {
  fs::path file(path);
  T3Settings settings = built_in(file.filename().string());
  std::string beside = file.parent_path() / "nightingale.json";
  if (fs::exists(beside)) {
    Json json = Json::parse(read_text(beside), beside);
    json.object(beside);
    if (const Json* t3 = json.find("t3")) {
      apply(*t3, beside + ": t3", settings);
    }
  }
  return settings;
}

T3Config T3Config::of(const TensorFile& file, const std::string& settings_of) {
  T3Config config;
  config.layers = count_layers(file, "tfmr.layers.");
  config.hidden = size_of(file, "speech_emb.weight", 2, 1);
  config.ffn = config.layers == 0
      ? 0
      : size_of(file, "tfmr.layers.0.mlp.gate_proj.weight", 2, 0);
  config.text_vocabulary = size_of(file, "text_emb.weight", 2, 0);
  config.speech_vocabulary = size_of(file, "speech_emb.weight", 2, 0);
  config.text_positions = size_of(file, "text_pos_emb.emb.weight", 2, 0);
  config.speech_positions = size_of(file, "speech_pos_emb.emb.weight", 2, 0);
  config.speaker_size = size_of(file, "cond_enc.spkr_enc.weight", 2, 1);
  config.perceiver_queries =
      size_of(file, "cond_enc.perceiver.pre_attention_query", 3, 1);
  config.settings = T3Settings::for_file(settings_of);
  check(config, file, settings_of);
  return config;
}

int t3_bits(const std::string& name, int bits) {
  if (bits == 0) {
    return 0;
  }
  if (name == "speech_head.weight") {
    return 8;
  }
  bool matrix =
      name.starts_with("tfmr.layers.") && name.ends_with("_proj.weight");
  return matrix ? bits : 0;
}

} // namespace nightingale
