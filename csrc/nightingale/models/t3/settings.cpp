#include "nightingale/models/t3/settings.h"

#include <cmath>
#include <filesystem>

#include "nightingale/error.h"
#include "nightingale/family.h"
#include "nightingale/io/input_file.h"
#include "nightingale/io/json.h"

namespace nightingale {

namespace {

namespace fs = std::filesystem;

const std::string kChatterbox017 = "chatterbox-0.1.7";
const std::string kUpstream = "upstream";

// A T3 file's name without its ending.
std::string stem_of(const std::string& path) {
  return fs::path(path).stem().string();
}

bool is_before_v3(const std::string& stem) {
  return stem == "t3_23lang" || stem == "t3_mtl23ls_v2";
}

// What the two releases differ in; both for multilingual models alone.
void apply_preset(
    const std::string& preset,
    const std::string& what,
    T3Settings& settings) {
  if (preset != kChatterbox017 && preset != kUpstream) {
    throw Error(
        what + " is '" + preset + "', expected " + kChatterbox017 + " or " +
        kUpstream);
  }
  settings.analyser = preset == kChatterbox017;
  settings.repetition_penalty = settings.analyser ? 2.0f : 1.2f;
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

} // namespace

bool is_multilingual(const std::string& path, int text_vocabulary) {
  std::string stem = stem_of(path);
  return text_vocabulary == kV1TextVocabulary ||
      text_vocabulary == kMultilingualTextVocabulary || is_before_v3(stem) ||
      stem == "t3_mtl23ls_v3";
}

T3Settings T3Settings::for_file(
    const std::string& path,
    bool multilingual,
    const std::optional<std::string>& preset) {
  T3Settings settings;
  auto choose = [&](const std::string& name, const std::string& what) {
    if (multilingual) {
      apply_preset(name, what, settings);
    }
  };
  if (multilingual) {
    settings.alignment_heads = {{12, 15}, {13, 11}, {9, 2}};
  }
  choose(is_before_v3(stem_of(path)) ? kChatterbox017 : kUpstream, path);
  std::string beside = fs::path(path).parent_path() / "nightingale.json";
  if (fs::exists(beside)) {
    Json json = Json::parse(read_text(beside), beside);
    json.object(beside);
    if (const Json* named = json.find("preset")) {
      choose(named->string(beside + ": preset"), beside + ": preset");
    }
    if (const Json* t3 = json.find("t3")) {
      apply(*t3, beside + ": t3", settings);
    }
  }
  if (preset) {
    choose(*preset, "preset");
  }
  return settings;
}

} // namespace nightingale
