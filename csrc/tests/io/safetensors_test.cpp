#include <doctest/doctest.h>

#include <cmath>

#include "file_writers.h"
#include "nightingale/io/tensor_file.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::string open_error(std::string_view bytes) {
  TempDir dir;
  std::string path = dir.write("model.safetensors", bytes);
  return error_of([&] { TensorFile::open(path); });
}

std::string header_error(std::string_view header, size_t data_bytes = 0) {
  return open_error(safetensors(header, std::string(data_bytes, '\0')));
}

} // namespace

TEST_CASE("safetensors of every type read back byte for byte") {
  const std::vector<std::tuple<std::string, mx::Dtype, size_t>> types = {
      {"BOOL", mx::bool_, 1},
      {"U8", mx::uint8, 1},
      {"I8", mx::int8, 1},
      {"I16", mx::int16, 2},
      {"I32", mx::int32, 4},
      {"I64", mx::int64, 8},
      {"F16", mx::float16, 2},
      {"BF16", mx::bfloat16, 2},
      {"F32", mx::float32, 4},
      {"F64", mx::float64, 8}};
  SafetensorsWriter writer;
  std::map<std::string, std::string> written;
  for (auto& [type, dtype, itemsize] : types) {
    std::string bytes(6 * itemsize, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = type == "BOOL" ? char(i % 2) : char(i * 37 + 1);
    }
    written[type] = bytes;
    writer.add(type, type, "[2,3]", bytes);
  }
  TempDir dir;
  auto file = TensorFile::open(dir.write("all", writer.finish()));
  CHECK(file->names().size() == types.size());
  for (auto& [type, dtype, itemsize] : types) {
    auto& info = file->info(type);
    CHECK(info.dtype == dtype);
    CHECK(info.shape == mx::Shape{2, 3});
    std::string bytes(info.nbytes(), '\0');
    file->read(type, dtype, bytes.data());
    CHECK(bytes == written[type]);
  }
}

TEST_CASE("safetensors are converted while they are read") {
  // More than one block of the conversion.
  std::vector<float> values(700'001);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = float(i % 256) / 8;
  }
  values[1] = NAN;
  values[2] = -INFINITY;
  std::string bytes = SafetensorsWriter()
                          .add("x", "F32", "[700001]", bytes_of(values))
                          .finish();
  TempDir dir;
  auto file = TensorFile::open(dir.write("x", bytes));
  std::vector<mx::float16_t> halves(values.size());
  file->read("x", mx::float16, halves.data());
  size_t wrong = 0;
  for (size_t i = 2; i < values.size(); ++i) {
    wrong += float(halves[i]) != values[i];
  }
  CHECK(wrong == 0);
  CHECK(std::isnan(float(halves[1])));
}

TEST_CASE("safetensors of no elements and of no dimensions") {
  TempDir dir;
  auto file = TensorFile::open(dir.write(
      "x",
      SafetensorsWriter()
          .add("empty", "F32", "[0,5]", "")
          .add("scalar", "I64", "[]", little_endian(int64_t(7)))
          .finish()));
  CHECK(file->info("empty").shape == mx::Shape{0, 5});
  file->read("empty", mx::float32, nullptr);
  int32_t value = 0;
  file->read("scalar", mx::int32, &value);
  CHECK(value == 7);
}

TEST_CASE("reading says which tensor is missing or has the wrong type") {
  TempDir dir;
  auto file = TensorFile::open(dir.write(
      "x",
      SafetensorsWriter()
          .add("ids", "I64", "[1]", little_endian(INT64_C(1) << 40))
          .finish()));
  char dst[8];
  CHECK(contains(
      error_of([&] { file->read("id", mx::int64, dst); }),
      "there is no tensor 'id'"));
  CHECK(contains(
      error_of([&] { file->read("ids", mx::float32, dst); }),
      "tensor 'ids' is int64, which cannot be read as float32"));
  CHECK(contains(
      error_of([&] { file->read("ids", mx::int32, dst); }),
      "tensor 'ids': element 0 does not fit int32"));
}

TEST_CASE("a header that contradicts itself or the file is refused") {
  using std::string;
  auto entry = [](string dtype, string shape, string offsets) {
    return "{\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
        ",\"data_offsets\":" + offsets + "}}";
  };
  CHECK(header_error(entry("F32", "[2]", "[0,8]"), 8) == "");
  CHECK(contains(
      header_error(entry("F32", "[2]", "[0,8]"), 7),
      "file is truncated: the tensors need 8 bytes of data, file has 7"));
  CHECK(contains(
      header_error(entry("F32", "[2]", "[0,8]"), 9),
      "the file has 9 bytes of data, expected 8"));
  CHECK(contains(
      header_error(entry("F32", "[2]", "[4,12]"), 12),
      "'w' begins at byte 4 of the data, expected 0"));
  CHECK(contains(
      header_error(entry("F32", "[3]", "[0,8]"), 8),
      "data_offsets are [0, 8], expected 12 bytes for F32 [3]"));
  CHECK(contains(
      header_error(entry("F8_E4M3", "[8]", "[0,8]"), 8),
      "tensor 'w' has type 'F8_E4M3', which is not supported"));
  CHECK(contains(
      header_error(entry("F32", "[-2]", "[0,8]"), 8), "dimension of -2"));
  CHECK(contains(
      header_error(entry("F32", "[4294967296]", "[0,8]"), 8),
      "dimension of 4294967296"));
  CHECK(contains(
      header_error(
          entry("F32", "[2147483647,2147483647,2147483647]", "[0,8]"), 8),
      "larger than any file"));
  CHECK(contains(
      header_error(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), 4),
      "has 9 dimensions"));
  CHECK(contains(
      header_error(entry("F32", "[2.0]", "[0,8]"), 8),
      "shape: expected an integer, found a number"));
  CHECK(contains(
      header_error(entry("F32", "[2]", "[0,8,9]"), 8), "has 3 entries"));
  CHECK(contains(
      header_error("{\"w\":{\"dtype\":\"F32\",\"shape\":[]}}"),
      "expected dtype, shape and data_offsets"));
  CHECK(contains(
      header_error("{\"__metadata__\":{\"a\":1}}"),
      "__metadata__.a: expected a string, found an integer"));
  CHECK(header_error("{\"__metadata__\":{\"a\":\"1\"}}") == "");
  CHECK(header_error("{\"__metadata__\":null}") == "");
}

TEST_CASE("safetensors may not overlap") {
  CHECK(contains(
      header_error(
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},)"
          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
          6),
      "'b' begins at byte 2 of the data, expected 4"));
}

TEST_CASE("a header length past the file or 100 MB is refused") {
  CHECK(contains(
      open_error(little_endian(uint64_t(1000)) + "{}"),
      "the header length is 1000, expected at most 2 in a file of 10 bytes"));
  CHECK(contains(
      open_error(little_endian(UINT64_MAX) + "{}"),
      "the header length is 18446744073709551615"));
}

TEST_CASE("files that are no checkpoint say so") {
  CHECK(contains(open_error(""), "found neither (0 bytes)"));
  CHECK(contains(open_error("hello, world"), "found neither (12 bytes)"));
  CHECK(contains(
      open_error("version https://git-lfs.github.com/spec/v1\n"),
      "Git LFS pointer"));
  CHECK(contains(
      error_of([] { TensorFile::open("/no/such/file.safetensors"); }),
      "/no/such/file.safetensors: cannot open: No such file"));
  CHECK(contains(
      error_of([] { TensorFile::open("/"); }), "expected a regular file"));
}

TEST_CASE("a file that shrinks after it was opened is an error, not a crash") {
  TempDir dir;
  std::string bytes =
      SafetensorsWriter().add("w", "F32", "[2]", std::string(8, 'x')).finish();
  auto file = TensorFile::open(dir.write("x", bytes));
  dir.write("x", bytes.substr(0, bytes.size() - 3));
  char dst[8];
  std::string message = error_of([&] { file->read("w", mx::float32, dst); });
  CHECK(contains(
      message,
      "file is truncated: tensor 'w' needs bytes " +
          std::to_string(bytes.size() - 8) + ".." +
          std::to_string(bytes.size()) + ", file has " +
          std::to_string(bytes.size() - 3)));
}
