#include "nightingale/io/file_notes.h"

#include <charconv>
#include <limits>

#include "nightingale/error.h"
#include "nightingale/io/affine_quantization.h"
#include "nightingale/io/json.h"
#include "nightingale/io/tensor_file.h"

namespace nightingale {

namespace {

constexpr int kVersion = 1;

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

} // namespace

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

std::string checksum_line(
    const std::string& name,
    const std::string& type,
    const mx::Shape& shape) {
  return name + " " + type + " " + to_string(shape);
}

} // namespace nightingale
