#include "nightingale/io/safetensors.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "nightingale/error.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/json.h"
#include "nightingale/io/quantized_tensors.h"

namespace nightingale {

namespace {

constexpr uint64_t max_header_bytes = 100'000'000;
constexpr uint64_t length_bytes = 8;

constexpr int kVersion = 1; // of FileNotes

// What `nightingale quantize` writes beside the tensors of a safetensors file:
// an object in JSON under "nightingale" in the header's metadata.
struct FileNotes {
  // The shapes of quantized tensors that are not matrices.
  std::map<std::string, mx::Shape> shapes;
  // CRC-32 of tensors by name: of their line (see below), then of their bytes.
  std::map<std::string, uint32_t> checksums;

  // Errors begin with `what`.
  static FileNotes parse(const std::string& text, const std::string& what);
};

void check_number(
    const Json& notes,
    const char* key,
    int64_t expected,
    const std::string& what,
    const std::string& otherwise) {
  const Json* value = notes.find(key);
  if (!value) {
    throw Error(what + ": there is no '" + key + "'");
  }
  if (int64_t found = value->integer(what + "." + key); found != expected) {
    throw Error(
        what + ": " + key + " is " + std::to_string(found) + ", expected " +
        std::to_string(expected) + otherwise);
  }
}

mx::Shape read_shape(const Json& value, const std::string& what) {
  mx::Shape shape;
  for (const Json& entry : value.array(what)) {
    int64_t size = entry.integer(what);
    if (size < 1 || size > std::numeric_limits<mx::ShapeElem>::max()) {
      throw Error(what + " has a dimension of " + std::to_string(size));
    }
    shape.push_back(static_cast<mx::ShapeElem>(size));
  }
  return shape;
}

uint32_t read_checksum(const Json& value, const std::string& what) {
  const std::string& digits = value.string(what);
  uint32_t sum = 0;
  auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), sum, 16);
  if (digits.size() != 8 || error != std::errc() ||
      end != digits.data() + digits.size()) {
    throw Error(what + ": expected 8 hexadecimal digits, found " + digits);
  }
  return sum;
}

FileNotes FileNotes::parse(const std::string& text, const std::string& what) {
  Json json = Json::parse(text, what);
  json.object(what);
  check_number(
      json,
      "version",
      kVersion,
      what,
      ": the file was written by another version of Nightingale");
  check_number(json, "group", kQuantizedGroup, what, " columns");

  FileNotes notes;
  if (const Json* shapes = json.find("shapes")) {
    for (const auto& [name, value] : shapes->object(what + ".shapes")) {
      notes.shapes[name] = read_shape(value, what + ".shapes." + name);
    }
  }
  if (const Json* sums = json.find("crc32")) {
    for (const auto& [name, value] : sums->object(what + ".crc32")) {
      notes.checksums[name] = read_checksum(value, what + ".crc32." + name);
    }
  }
  return notes;
}

class Safetensors : public TensorFile {
 public:
  explicit Safetensors(std::unique_ptr<const InputFile> input)
      : TensorFile(std::move(input)) {
    std::string text = read_header();
    data_begin_ = length_bytes + text.size();
    Json header = Json::parse(text, path() + ": header");
    for (auto& [name, entry] : header.object(path() + ": header")) {
      if (name == "__metadata__") {
        if (!entry.is_null()) { // as MLX writes none
          read_metadata(entry);
        }
      } else {
        add_entry(name, entry);
      }
    }
    check_coverage();
    set_sums();
    join_quantized(notes_.shapes);
  }

 private:
  std::string read_header() const {
    uint64_t length = 0;
    file().read(0, &length, length_bytes, "the header length");
    uint64_t available = file().size() - length_bytes;
    if (length > available || length > max_header_bytes) {
      file().fail(
          "the header length is " + std::to_string(length) +
          ", expected at most " +
          std::to_string(std::min(available, max_header_bytes)) +
          " in a file of " + std::to_string(file().size()) + " bytes");
    }
    std::string text(length, '\0');
    file().read(length_bytes, text.data(), length, "the header");
    return text;
  }

  void read_metadata(const Json& metadata) {
    std::string what = path() + ": header: __metadata__";
    for (auto& [key, value] : metadata.object(what)) {
      metadata_.emplace(key, value.string(what + "." + key));
      if (key == "nightingale") {
        notes_ = FileNotes::parse(value.string(what), what + "." + key);
      }
    }
  }

  void add_entry(const std::string& name, const Json& entry) {
    std::string what = path() + ": header: tensor '" + name + "'";
    if (entry.object(what).size() != 3) {
      throw Error(what + ": expected dtype, shape and data_offsets alone");
    }
    auto field = [&](std::string_view key) -> const Json& {
      if (const Json* found = entry.find(key)) {
        return *found;
      }
      throw Error(what + ": there is no '" + std::string(key) + "'");
    };

    const std::string& type = field("dtype").string(what + ": dtype");
    auto dtype = find_stored_dtype(type);
    if (!dtype) {
      throw Error(
          what + " has type '" + type +
          "', which is not supported; expected BOOL, an integer type, F16, "
          "BF16, F32 or F64");
    }
    std::vector<int64_t> dims;
    for (auto& dim : field("shape").array(what + ": shape")) {
      dims.push_back(dim.integer(what + ": shape"));
    }
    auto& info = add_tensor(name, *dtype, dims);

    auto& offsets = field("data_offsets").array(what + ": data_offsets");
    if (offsets.size() != 2) {
      throw Error(
          what + ": data_offsets has " + std::to_string(offsets.size()) +
          " entries, expected 2");
    }
    int64_t begin = offsets[0].integer(what + ": data_offsets");
    int64_t end = offsets[1].integer(what + ": data_offsets");
    if (begin < 0 || end < begin || uint64_t(end - begin) != info.nbytes()) {
      throw Error(
          what + ": data_offsets are [" + std::to_string(begin) + ", " +
          std::to_string(end) + "], expected " + std::to_string(info.nbytes()) +
          " bytes for " + type + " " + to_string(info.shape));
    }
    Range range{
        "tensor '" + name + "'", data_begin_ + uint64_t(begin), info.nbytes()};
    range.line = checksum_line(name, type, info.shape);
    auto added = ranges_.emplace(name, std::move(range)).first;
    views_.emplace(name, View{&added->second, 0, info.nbytes()});
  }

  void check_coverage() const {
    std::vector<std::tuple<uint64_t, uint64_t, std::string_view>> ranges;
    for (auto& [name, range] : ranges_) {
      uint64_t begin = range.offset - data_begin_;
      ranges.emplace_back(begin, begin + range.size, name);
    }
    std::ranges::sort(ranges);
    uint64_t covered = 0;
    for (auto& [begin, end, name] : ranges) {
      if (begin != covered) {
        file().fail(
            "header: tensor '" + std::string(name) + "' begins at byte " +
            std::to_string(begin) + " of the data, expected " +
            std::to_string(covered) + ", where the one before it ends");
      }
      covered = end;
    }
    uint64_t available = file().size() - data_begin_;
    if (covered > available) {
      file().fail(
          "file is truncated: the tensors need " + std::to_string(covered) +
          " bytes of data, file has " + std::to_string(available));
    }
    if (covered < available) {
      file().fail(
          "the file has " + std::to_string(available) +
          " bytes of data, expected " + std::to_string(covered) +
          " from its header");
    }
  }

  // Where some tensors have checksums, all have, and nothing else has.
  void set_sums() {
    auto& sums = notes_.checksums;
    if (sums.empty()) {
      return;
    }
    for (auto& [name, range] : ranges_) {
      auto sum = sums.find(name);
      if (sum == sums.end()) {
        file().fail("the file is damaged: " + range.what + " has no checksum");
      }
      range.crc = sum->second;
    }
    for (auto& [name, sum] : sums) {
      if (!ranges_.contains(name)) {
        file().fail(
            "the file is damaged: it has a checksum of '" + name +
            "', but no such tensor");
      }
    }
  }

  uint64_t data_begin_ = 0;
  FileNotes notes_;
};

} // namespace

std::string checksum_line(
    const std::string& name,
    const std::string& type,
    const mx::Shape& shape) {
  return name + " " + type + " " + to_string(shape);
}

std::shared_ptr<const TensorFile> open_safetensors(
    std::unique_ptr<const InputFile> file) {
  return std::make_shared<Safetensors>(std::move(file));
}

} // namespace nightingale
