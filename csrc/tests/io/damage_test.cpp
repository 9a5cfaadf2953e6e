// What happens to damaged checkpoints: they load fully or throw an Error.

#include <doctest/doctest.h>

#include <map>
#include <random>

#include "file_writers.h"
#include "nightingale/io/tensor_file.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::string good_safetensors() {
  return SafetensorsWriter()
      .add("t3.emb", "F32", "[4,3]", bytes_of(std::vector<float>(12, 1.5f)))
      .add("t3.half", "F16", "[3]", "abcdef")
      .add("gen.ids", "I64", "[2]", bytes_of(std::vector<int64_t>{6561, -1}))
      .add("gen.flags", "BOOL", "[3]", std::string("\1\0\1", 3))
      .finish();
}

// Everything the file holds, as text.
std::map<std::string, std::string> load(
    const TempDir& dir,
    const std::string& bytes) {
  auto file = TensorFile::open(dir.write("damaged", bytes));
  std::map<std::string, std::string> contents;
  for (auto& name : file->names()) {
    auto& info = file->info(name);
    std::string elements(info.nbytes(), '\0');
    file->read(name, info.dtype, elements.data());
    contents[name] = to_string(info.shape) + elements;
  }
  return contents;
}

std::string mutate(std::string bytes, std::mt19937& random) {
  auto place = [&] { return random() % bytes.size(); };
  switch (random() % 5) {
    case 0:
      bytes[place()] ^= char(1 << random() % 8);
      break;
    case 1:
      for (int i = 0; i < 8; ++i) {
        bytes[place()] = char(random());
      }
      break;
    case 2:
      bytes.resize(place());
      break;
    case 3: { // a stretch of the file copied over another
      size_t from = place();
      std::string stretch = bytes.substr(from, random() % 40);
      size_t to = place();
      bytes.replace(to, random() % 40, stretch);
      break;
    }
    case 4: { // where a length may be, a tempting one
      const uint32_t lengths[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff};
      std::string length = little_endian(lengths[random() % 5]);
      bytes.replace(place(), random() % 2 ? 4 : 1, length);
      break;
    }
  }
  return bytes;
}

} // namespace

TEST_CASE("200 damaged checkpoints load fully or throw an Error") {
  TempDir dir;
  std::mt19937 random(20240601);
  const std::string tensors = good_safetensors();
  CHECK(load(dir, tensors).size() == 4);
  int loaded = 0;
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    auto bytes = mutate(tensors, random);
    bool failed = !error_of([&] { load(dir, bytes); }).empty();
    ++(failed ? refused : loaded);
  }
  CHECK(loaded + refused == 200);
  CHECK(loaded > 10); // harmless damage exists: names, padding, elements
  CHECK(refused > 100);
}

TEST_CASE("damage to a safetensors header is an error or changes nothing") {
  TempDir dir;
  const std::string good = good_safetensors();
  const auto expected = load(dir, good);
  uint64_t header_size = 0;
  std::memcpy(&header_size, good.data(), 8);
  int wrong = 0;
  for (size_t bit = 0; bit < 8 * (8 + header_size); ++bit) {
    std::string bad = good;
    bad[bit / 8] ^= char(1 << bit % 8);
    bool in_length = bit < 64;
    error_of([&] {
      auto contents = load(dir, bad);
      // A changed name is another valid file: count what is still there.
      wrong += in_length || contents.size() != expected.size();
      for (auto& [name, content] : contents) {
        auto original = expected.find(name);
        wrong += original != expected.end() && original->second != content;
      }
    });
  }
  CHECK(wrong == 0);
}

TEST_CASE("a checkpoint cut off anywhere is an error") {
  TempDir dir;
  const std::string good = good_safetensors();
  int accepted = 0;
  for (size_t size = 0; size < good.size(); ++size) {
    accepted += error_of([&] { load(dir, good.substr(0, size)); }).empty();
  }
  CHECK(accepted == 0);
}

TEST_CASE("a path with a NUL in it is refused, not cut there") {
  TempDir dir;
  std::string path = dir.write("whole", good_safetensors());
  CHECK(TensorFile::open(path)->names().size() == 4);
  auto error =
      error_of([&] { TensorFile::open(path + std::string("\0b", 2)); });
  CHECK(contains(error, "NUL"));
}
