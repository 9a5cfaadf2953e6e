#include "io/fuzz/targets.h"

#include <stdexcept>

#include "io/file_writers.h"
#include "nightingale/error.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/t3/config.h"

namespace nightingale::testing {

namespace {

const TempDir& folder() {
  static TempDir dir;
  return dir;
}

std::string floats(size_t count) {
  return bytes_of(std::vector<float>(count, 0.25f));
}

std::string plain_file() {
  return SafetensorsWriter()
      .add("a", "F32", "[2,3]", floats(6))
      .add("b", "BF16", "[1]", "ab")
      .add("c", "BOOL", "[3]", std::string("\1\0\1", 3))
      .add("d", "I64", "[2]", bytes_of(std::vector<int64_t>{6561, -1}))
      .finish();
}

// With a quantized matrix and what `nightingale quantize` writes beside it.
std::string quantized_file() {
  std::string notes =
      R"({\"version\":1,\"group\":64,\"shapes\":{\"m.weight\":[2,64,1]}})";
  std::string header = R"({"__metadata__":{"format":"mlx","nightingale":")" +
      notes +
      R"("},"m.biases":{"dtype":"F16","shape":[2,1],"data_offsets":[0,4]},)"
      R"("m.scales":{"dtype":"F16","shape":[2,1],"data_offsets":[4,8]},)"
      R"("m.weight":{"dtype":"U32","shape":[2,16],"data_offsets":[8,136]}})";
  return safetensors(header, std::string(136, 'x'));
}

std::string voice_file() {
  return SafetensorsWriter()
      .add("t3.speaker_emb", "F32", "[1,8]", floats(8))
      .add(
          "t3.cond_prompt_speech_tokens",
          "I32",
          "[1,3]",
          bytes_of(std::vector<int>{1, 2, 3}))
      .add("t3.emotion_adv", "F32", "[1,1,1]", floats(1))
      .add("gen.prompt_token", "I64", "[1]", bytes_of(std::vector<int64_t>{7}))
      .add("gen.prompt_feat", "F16", "[1,1,4]", "abcdefgh")
      .add("gen.embedding", "F64", "[1]", bytes_of(std::vector<double>{0.5}))
      .finish();
}

// Reads a tensor as Python is given it.
void read(const TensorFile& file, const std::string& name, mx::Dtype dtype) {
  std::string elements(file.info(name).size * dtype.size(), '\0');
  file.read(name, dtype, elements.data());
}

void read_safetensors(std::string_view bytes) {
  auto file = TensorFile::open(folder().write("any", bytes));
  file->fewest_bits();
  for (const auto& name : file->names()) {
    read(*file, name, file->info(name).dtype);
    file->bits(name);
    file->metadata(name);
  }
}

void read_voice(std::string_view bytes) {
  auto file = TensorFile::open(folder().write("voice", bytes));
  for (const auto& name : file->names()) {
    bool whole = !is_float(file->info(name).dtype);
    read(*file, name, whole ? mx::int32 : mx::float32);
  }
}

void read_settings(std::string_view bytes) {
  folder().write("nightingale.json", bytes);
  T3Settings::for_file(folder().path() + "/t3_cfg.safetensors", true);
}

template <void (*reader)(std::string_view)>
bool accepts(std::string_view bytes) {
  try {
    reader(bytes);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> settings_seeds() {
  return {
      "{}",
      R"({"t3": {"analyser": true, "alignment_heads": [[9, 2], [12, 15]],)"
      R"( "repetition_penalty": 1.2, "stop_at_repeat": false}})",
      R"({"languages": ["en", "fr"], "s3gen": {"temperature": 0.5}})",
      R"({"t3": {"repetition_penalty": 1e-3}, "a\u00e9": [null, "\n"]})"};
}

} // namespace

const std::vector<FuzzTarget>& fuzz_targets() {
  static const std::vector<FuzzTarget> targets{
      {"safetensors",
       [] { return std::vector{plain_file(), quantized_file()}; },
       accepts<read_safetensors>},
      {"settings", settings_seeds, accepts<read_settings>},
      {"voice", [] { return std::vector{voice_file()}; }, accepts<read_voice>},
  };
  return targets;
}

const FuzzTarget& fuzz_target(std::string_view name) {
  for (const auto& target : fuzz_targets()) {
    if (target.name == name) {
      return target;
    }
  }
  throw std::invalid_argument("there is no target " + std::string(name));
}

} // namespace nightingale::testing
