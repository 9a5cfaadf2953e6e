#include <doctest/doctest.h>

#include "file_writers.h"
#include "nightingale/io/crc32.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/quantized_tensors.h"
#include "nightingale/io/safetensors.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/weights.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr int kRows = 3, kColumns = 128;

std::string halves(const std::vector<float>& values) {
  std::string bytes;
  for (float value : values) {
    bytes += little_endian(float16_bits(value));
  }
  return bytes;
}

// A quantized matrix: value i is i * 7 + `first`, scales and biases differ by
// group and are exact in float16.
struct QuantizedMatrix {
  int bits;
  int first = 0;

  int quantized(int i) const {
    return (i * 7 + first) & ((1 << bits) - 1);
  }
  static float scale(int group) {
    return 0.25f * float(group + 1);
  }
  static float bias(int group) {
    return -1.5f * float(group);
  }
  Values values() const {
    Values values;
    for (int i = 0; i < kRows * kColumns; ++i) {
      values.push_back(scale(i / 64) * float(quantized(i)) + bias(i / 64));
    }
    return values;
  }
  std::string words() const {
    std::vector<uint32_t> words(kRows * kColumns * bits / 32, 0);
    for (int i = 0; i < kRows * kColumns; ++i) {
      words[i * bits / 32] |= uint32_t(quantized(i)) << (i * bits % 32);
    }
    return bytes_of(words);
  }
  static std::string groups(float (*value)(int)) {
    std::vector<float> values;
    for (int group = 0; group < kRows * kColumns / 64; ++group) {
      values.push_back(value(group));
    }
    return halves(values);
  }
  // Under the names that `layer` has in MLX's files.
  void add_to(SafetensorsWriter& file, const std::string& layer) const {
    std::string shape = "[3," + std::to_string(kColumns * bits / 32) + "]";
    file.add(layer + ".weight", "U32", shape, words())
        .add(layer + ".scales", "F16", "[3,2]", groups(scale))
        .add(layer + ".biases", "F16", "[3,2]", groups(bias));
  }
};

std::shared_ptr<const TensorFile> open(const std::string& bytes) {
  TempDir dir;
  return TensorFile::open(dir.write("model.safetensors", bytes));
}

std::shared_ptr<const TensorFile> quantized_file() {
  SafetensorsWriter file;
  QuantizedMatrix{8}.add_to(file, "q");
  QuantizedMatrix{4}.add_to(file, "k");
  file.add(
      "f.weight", "F32", "[3,128]", bytes_of(std::vector<float>(384, 0.5f)));
  return open(file.finish());
}

Values dense(const ops::Matrix& matrix) {
  return values(matrix.dequantized(mx::float32, cpu_stream()));
}

} // namespace

TEST_CASE("quantized weights, scales and biases are one tensor") {
  auto file = quantized_file();
  CHECK(
      file->names() ==
      std::vector<std::string>{"f.weight", "k.weight", "q.weight"});
  CHECK(file->info("q.weight").shape == mx::Shape{3, 128});
  CHECK(file->info("q.weight").dtype == mx::float16);
  CHECK(file->bits("q.weight") == 8);
  CHECK(file->bits("k.weight") == 4);
  CHECK(file->bits("f.weight") == 0);
  CHECK(file->fewest_bits() == 4);
  CHECK(size_of(*file, "k.weight", 2, 1) == 128);
}

TEST_CASE("taking a quantized tensor dequantizes it") {
  for (mx::Dtype dtype : {mx::float32, mx::float16}) {
    Weights weights(quantized_file(), dtype);
    CHECK(
        values(weights.take("q.weight", {3, 128})) ==
        QuantizedMatrix{8}.values());
    CHECK(
        values(weights.take("k.weight", {3, 128})) ==
        QuantizedMatrix{4}.values());
    CHECK(weights.unused({"f.weight"}).empty());
  }
}

TEST_CASE("a matrix for products keeps the file's quantized weights") {
  Weights weights(quantized_file(), mx::float32);
  auto q = weights.take_matrix({"q.weight"}, {3, 128}, 4, cpu_stream());
  CHECK(q.bits == 8);
  CHECK(dense(q) == QuantizedMatrix{8}.values());
  auto k = weights.take_matrix({"k.weight"}, {3, 128}, 0, cpu_stream());
  CHECK(k.bits == 4);
  CHECK(dense(k) == QuantizedMatrix{4}.values());
  CHECK(weights.nbytes() == q.nbytes() + k.nbytes());
}

TEST_CASE("matrices of different bits are stacked without a change") {
  Weights weights(quantized_file(), mx::float32);
  auto both =
      weights.take_matrix({"k.weight", "q.weight"}, {3, 128}, 0, cpu_stream());
  CHECK(both.bits == 8);
  CHECK(both.rows() == 6);
  auto expected = QuantizedMatrix{4}.values(), q = QuantizedMatrix{8}.values();
  expected.insert(expected.end(), q.begin(), q.end());
  CHECK(dense(both) == expected);
}

TEST_CASE("floats are quantized where bits are given, and stay floats else") {
  Weights weights(quantized_file(), mx::float32);
  auto floats = weights.take_matrix({"f.weight"}, {3, 128}, 0, cpu_stream());
  CHECK(!floats.is_quantized());
  CHECK(values(floats.w) == Values(384, 0.5));
  auto quantized = weights.take_matrix({"f.weight"}, {3, 128}, 4, cpu_stream());
  CHECK(quantized.bits == 4);
  CHECK(dense(quantized) == Values(384, 0.5));
  CHECK(contains(
      error_of([&] {
        weights.take_matrix(
            {"q.weight", "f.weight"}, {3, 128}, 8, cpu_stream());
      }),
      "f.weight: it holds floats where 'q.weight' is quantized"));
}

TEST_CASE("tensors that do not fit together are errors that say why") {
  QuantizedMatrix matrix{8};
  auto scales = QuantizedMatrix::groups(QuantizedMatrix::scale);
  auto broken = [&](const std::string& words_shape,
                    const std::string& scale_type,
                    const std::string& scale_shape,
                    const std::string& bias_shape) {
    SafetensorsWriter file;
    file.add("q.weight", "U32", words_shape, matrix.words());
    if (!scale_shape.empty()) {
      file.add("q.scales", scale_type, scale_shape, scales);
    }
    if (!bias_shape.empty()) {
      file.add("q.biases", "F16", bias_shape, scales);
    }
    return error_of([&] { open(file.finish()); });
  };
  std::string holds = "model.safetensors: tensor 'q.weight' is quantized, but ";
  CHECK(broken("[3,32]", "F16", "[3,2]", "[3,2]").empty());
  CHECK(contains(
      broken("[3,32]", "F16", "", "[3,2]"), holds + "there is no 'q.scales'"));
  CHECK(contains(
      broken("[3,32]", "F16", "[3,2]", ""), holds + "there is no 'q.biases'"));
  CHECK(contains(
      broken("[3,32]", "I16", "[3,2]", "[3,2]"),
      "'q.scales' is int16, expected a float type"));
  CHECK(contains(
      broken("[3,32]", "BF16", "[3,2]", "[3,2]"),
      "its biases are float16 [3, 2] beside scales of bfloat16 [3, 2]"));
  CHECK(contains(
      broken("[3,32]", "F16", "[3,2]", "[2,3]"),
      "its biases are float16 [2, 3] beside scales of float16 [3, 2]"));
  CHECK(contains(
      broken("[3,32]", "F16", "[2,3]", "[2,3]"),
      "they are [3, 32] beside scales of [2, 3]"));
  CHECK(contains(
      broken("[3,2,16]", "F16", "[3,2]", "[3,2]"),
      "expected matrices with the same rows"));
  SafetensorsWriter six_bits;
  six_bits.add("q.weight", "U32", "[3,24]", std::string(288, '\0'))
      .add("q.scales", "F16", "[3,2]", scales)
      .add("q.biases", "F16", "[3,2]", scales);
  CHECK(contains(
      error_of([&] { open(six_bits.finish()); }),
      holds +
          "24 words and 2 scales a row are not 8 or 4 bits in groups of 64"));
}

TEST_CASE("bits are those that words and groups agree on") {
  CHECK(quantized_bits(16, 1) == 8);
  CHECK(quantized_bits(8, 1) == 4);
  CHECK(quantized_bits(48, 3) == 8);
  CHECK(quantized_bits(12, 1) == 0); // 6 bits
  CHECK(quantized_bits(4, 1) == 0);
  CHECK(quantized_bits(16, 0) == 0);
}

TEST_CASE("a plain tensor of whole numbers is not taken for a quantized one") {
  auto file =
      open(SafetensorsWriter()
               .add("ids", "U32", "[2]", bytes_of(std::vector<uint32_t>{7, 9}))
               .finish());
  CHECK(file->info("ids").dtype == mx::uint32);
  CHECK(file->bits("ids") == 0);
}

namespace {

// The first entry of a header: what `nightingale quantize` notes.
std::string with_notes(const SafetensorsWriter& file, std::string notes) {
  std::string bytes = file.finish();
  uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  std::string quoted;
  for (char c : notes) {
    quoted += c == '"' ? "\\\"" : std::string(1, c);
  }
  std::string header = "{\"__metadata__\":{\"nightingale\":\"" + quoted +
      "\"}," + bytes.substr(9, length - 1);
  return safetensors(header, bytes.substr(8 + length));
}

SafetensorsWriter kernel() {
  SafetensorsWriter file;
  QuantizedMatrix{8}.add_to(file, "conv");
  return file;
}

std::string notes(const std::string& rest) {
  return "{\"version\":1,\"group\":64," + rest + "}";
}

} // namespace

TEST_CASE("quantized rows take the shape that is noted for them") {
  auto bytes =
      with_notes(kernel(), notes("\"shapes\":{\"conv.weight\":[3,32,4]}"));
  Weights weights(open(bytes), mx::float32);
  CHECK(weights.shape("conv.weight") == mx::Shape{3, 32, 4});
  auto ordered = weights.take_conv("conv", {3, 32, 4});
  CHECK(ordered.shape() == mx::Shape{3, 4, 32});
  CHECK(values(ordered)[1] == QuantizedMatrix{8}.values()[4]);

  auto error_with = [&](const std::string& shapes) {
    auto text = notes("\"shapes\":" + shapes);
    return error_of([&] { open(with_notes(kernel(), text)); });
  };
  CHECK(contains(
      error_with("{\"conv.weight\":[3,32,5]}"),
      "is quantized as [3, 128], which cannot be [3, 32, 5]"));
  CHECK(contains(
      error_with("{\"conv.weight\":[6,64]}"), "which cannot be [6, 64]"));
  CHECK(contains(
      error_with("{\"conv.weight\":[3,-128,-1]}"), "a dimension of -128"));
  CHECK(contains(
      error_with("{\"other\":[3,128]}"),
      "there is a shape for 'other', which is not quantized"));
}

TEST_CASE("groups may go from one row into the next") {
  QuantizedMatrix quantized{8};
  SafetensorsWriter file;
  file.add("conv.weight", "U32", "[6,16]", quantized.words())
      .add(
          "conv.scales",
          "F16",
          "[6,1]",
          quantized.groups(QuantizedMatrix::scale))
      .add(
          "conv.biases",
          "F16",
          "[6,1]",
          quantized.groups(QuantizedMatrix::bias));
  auto bytes = with_notes(file, notes("\"shapes\":{\"conv.weight\":[4,96]}"));
  auto stored = open(bytes);
  CHECK(stored->bits("conv.weight") == 0); // no product reads them so
  CHECK(stored->fewest_bits() == 8);
  Weights weights(stored, mx::float32);
  auto read = weights.take("conv.weight", {4, 96});
  CHECK(values(read) == quantized.values());
}

TEST_CASE("notes of another version or group are errors") {
  auto error_with = [&](const std::string& text) {
    return error_of([&] { open(with_notes(kernel(), text)); });
  };
  CHECK(contains(
      error_with("{\"version\":2,\"group\":64}"),
      "version is 2, expected 1: the file was written by another version"));
  CHECK(contains(
      error_with("{\"version\":1,\"group\":32}"),
      "group is 32, expected 64 columns"));
  CHECK(contains(error_with("{\"version\":1}"), "there is no 'group'"));
  CHECK(contains(
      error_with(notes("\"crc32\":{\"conv.weight\":\"12345678z\"}")),
      "expected 8 hexadecimal digits, found 12345678z"));
}

namespace {

std::string noted_sum(
    const std::string& name,
    const std::string& line,
    const std::string& data) {
  uint32_t sum =
      crc32(crc32(0, line.data(), line.size()), data.data(), data.size());
  char digits[9];
  std::snprintf(digits, sizeof digits, "%08x", sum);
  return "\"" + name + "\":\"" + digits + "\"";
}

std::string kernel_with_sums(const std::string& name_of_scales) {
  auto scales = QuantizedMatrix::groups(QuantizedMatrix::scale);
  auto biases = QuantizedMatrix::groups(QuantizedMatrix::bias);
  auto sums = noted_sum(
                  "conv.weight",
                  "conv.weight U32 [3, 32]",
                  QuantizedMatrix{8}.words()) +
      "," + noted_sum(name_of_scales, "conv.scales F16 [3, 2]", scales) + "," +
      noted_sum("conv.biases", "conv.biases F16 [3, 2]", biases);
  return with_notes(kernel(), notes("\"crc32\":{" + sums + "}"));
}

} // namespace

TEST_CASE("a tensor that does not have its checksum is damaged") {
  CHECK(
      checksum_line("conv.scales", "F16", {3, 2}) == "conv.scales F16 [3, 2]");
  auto bytes = kernel_with_sums("conv.scales");
  Weights whole(open(bytes), mx::float32);
  CHECK(
      values(whole.take("conv.weight", {3, 128})) ==
      QuantizedMatrix{8}.values());

  bytes[bytes.find(QuantizedMatrix::groups(QuantizedMatrix::scale)) + 5] ^= 1;
  Weights damaged(open(bytes), mx::float32);
  CHECK(contains(
      error_of([&] { damaged.take("conv.weight", {3, 128}); }),
      "model.safetensors: the file is damaged: tensor 'conv.scales' does not "
      "have its checksum"));
}

TEST_CASE("a checksum whose name is damaged is missed") {
  CHECK(contains(
      error_of([&] { open(kernel_with_sums("conv.scalet")); }),
      "the file is damaged: tensor 'conv.scales' has no checksum"));
  auto one_more = kernel_with_sums("conv.scales\":\"00000000\",\"other");
  CHECK(contains(
      error_of([&] { open(one_more); }),
      "it has a checksum of 'other', but no such tensor"));
}
