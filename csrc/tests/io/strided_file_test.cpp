#include "nightingale/io/strided_file.h"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>

#include "file_writers.h"
#include "nightingale/io/crc32.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::vector<float> count_up(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

const std::string twelve = bytes_of(count_up(12));

std::vector<float> read(const TensorFile& file, const std::string& name) {
  std::vector<float> values(file.info(name).size);
  file.read(name, mx::float32, values.data());
  return values;
}

uint32_t crc_of(const std::string& bytes) {
  return crc32(0, bytes.data(), bytes.size());
}

// A view "w" of the floats 0..11, which are bytes 3 to 51 of a file.
std::shared_ptr<const TensorFile> open_view(
    int64_t offset,
    const std::vector<int64_t>& shape,
    const std::vector<int64_t>& strides) {
  TempDir dir;
  std::string path = dir.write("model.pt", "abc" + twelve + "def");
  return open_strided_file(
      path,
      {{{"data", 3, 48, crc_of(twelve)}},
       {{"w", mx::float32, "data", offset, shape, strides}},
       {}});
}

std::string view_error(
    int64_t offset,
    const std::vector<int64_t>& shape,
    const std::vector<int64_t>& strides) {
  return error_of([&] { open_view(offset, shape, strides); });
}

} // namespace

TEST_CASE("crc32 of the check string") {
  CHECK(crc32(0, "123456789", 9) == 0xcbf43926);
  std::string text(1000, 'n');
  uint32_t halves = crc32(crc32(0, text.data(), 333), text.data() + 333, 667);
  CHECK(crc32(0, text.data(), text.size()) == halves);
}

TEST_CASE("a strided tensor is read by offset and strides") {
  CHECK(read(*open_view(0, {3, 4}, {4, 1}), "w") == count_up(12));
  CHECK(
      read(*open_view(0, {4, 3}, {1, 4}), "w") ==
      std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(
      read(*open_view(5, {2, 2}, {4, 2}), "w") ==
      std::vector<float>{5, 7, 9, 11});
  CHECK(read(*open_view(4, {4}, {1}), "w") == std::vector<float>{4, 5, 6, 7});
  CHECK(
      read(*open_view(3, {2, 2}, {0, 0}), "w") ==
      std::vector<float>{3, 3, 3, 3});
  CHECK(read(*open_view(7, {}, {}), "w") == std::vector<float>{7});
  CHECK(read(*open_view(0, {0, 4}, {4, 1}), "w").empty());
  // The stride of a dimension of one is arbitrary in torch.
  CHECK(
      read(*open_view(8, {1, 4}, {999, 1}), "w") ==
      std::vector<float>{8, 9, 10, 11});
}

TEST_CASE("a strided tensor may not reach outside its range") {
  for (auto& [offset, shape, strides] : std::vector<
           std::tuple<int64_t, std::vector<int64_t>, std::vector<int64_t>>>{
           {1, {3, 4}, {4, 1}},
           {-1, {2}, {1}},
           {0, {2}, {-1}},
           {12, {1}, {1}},
           {INT64_MAX, {1}, {1}},
           {0, {2}, {INT64_MAX}},
           {0, {2, 2}, {INT64_MAX, INT64_MAX}},
           {0, {3}, {INT64_C(1) << 62}}}) {
    CHECK(contains(
        view_error(offset, shape, strides),
        "reaches outside its storage of 12 elements"));
  }
  CHECK(contains(
      view_error(0, {1 << 30, 1 << 10}, {0, 0}),
      "tensor 'w' of shape [1073741824, 1024] repeats a few stored elements"));
  CHECK(contains(view_error(0, {-1}, {1}), "dimension of -1"));
  CHECK(contains(view_error(0, {3, 4}, {1}), "or a stride too few"));
}

TEST_CASE("a strided file's layout must fit the file") {
  TempDir dir;
  std::string path = dir.write("model.pt", twelve);
  StridedTensor tensor{"w", mx::float32, "data", 0, {12}, {1}};
  auto error = [&](const StridedLayout& layout) {
    return error_of([&] { open_strided_file(path, layout); });
  };
  CHECK(error({{{"data", 0, 48, 0}}, {tensor}, {{"a", 1.0}}}) == "");
  CHECK(contains(
      error({{{"data", 1, 48, 0}}, {tensor}, {}}),
      "file is truncated: zip entry 'data' needs 48 bytes at 1, file has 48"));
  CHECK(contains(
      error({{{"data", UINT64_MAX, 48, 0}}, {tensor}, {}}), "is truncated"));
  CHECK(contains(error({{}, {tensor}, {}}), "no stored elements"));
  CHECK(contains(
      error({{{"data", 0, 48, 0}}, {tensor, tensor}, {}}),
      "the name 'w' appears twice"));
}

TEST_CASE("a range is checked against its sum by its first reader") {
  TempDir dir;
  std::string path = dir.write("model.pt", twelve);
  StridedLayout layout{
      {{"data", 0, 48, crc_of(twelve)}},
      {{"whole", mx::float32, "data", 0, {12}, {1}},
       {"end", mx::float32, "data", 10, {2}, {1}}},
      {{"gain", 0.5}}};
  auto file = open_strided_file(path, layout);
  CHECK(read(*file, "end") == std::vector<float>{10, 11});
  CHECK(read(*file, "end") == std::vector<float>{10, 11}); // the sum is known
  CHECK(read(*file, "whole") == count_up(12));
  CHECK(file->scalar("gain") == 0.5);

  *layout.ranges[0].crc ^= 1;
  file = open_strided_file(path, layout);
  for (auto name : {"end", "whole"}) {
    CHECK(contains(
        error_of([&] { read(*file, name); }),
        "the checksum of zip entry 'data' is"));
  }
}

TEST_CASE("ranges without a sum may hold the parts of quantized tensors") {
  TempDir dir;
  float scale = 0.5f, bias = -1.0f;
  std::string bytes(72, '\2');
  std::memcpy(bytes.data() + 64, &scale, 4);
  std::memcpy(bytes.data() + 68, &bias, 4);
  StridedLayout layout{
      {{"words", 0, 64}, {"scales", 64, 4}, {"biases", 68, 4}},
      {{"w.weight", mx::uint32, "words", 0, {1, 16}, {16, 1}},
       {"w.scales", mx::float32, "scales", 0, {1, 1}, {1, 1}},
       {"w.biases", mx::float32, "biases", 0, {1, 1}, {1, 1}}},
      {},
      true};
  std::string path = dir.write("model.safetensors", bytes);
  auto file = open_strided_file(path, layout);
  CHECK(file->bits("w.weight") == 8);
  CHECK(read(*file, "w.weight") == std::vector<float>(64, 0.0f));

  layout.quantized = false;
  CHECK(open_strided_file(path, layout)->bits("w.weight") == 0);
  layout.ranges[2].offset = 69;
  CHECK(contains(
      error_of([&] { open_strided_file(path, layout); }),
      "file is truncated: tensor 'biases' needs 4 bytes at 69"));
}

TEST_CASE("a torch archive is told apart and how to convert it") {
  TempDir dir;
  std::string path = dir.write("t3.pt", "PK\3\4 and so on");
  CHECK(contains(
      error_of([&] { TensorFile::open(path); }),
      "convert its folder with `nightingale pull --convert FOLDER`"));
  path = dir.write("old.pt", "\x80\x02\x8a\x0arest");
  CHECK(contains(
      error_of([&] { TensorFile::open(path); }),
      "before torch 1.6; to convert it"));
}
