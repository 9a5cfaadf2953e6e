#include <doctest/doctest.h>

#include <numeric>

#include "file_writers.h"
#include "nightingale/io/crc32.h"
#include "nightingale/io/tensor_file.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::vector<float> count_up(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

const std::string twelve = bytes_of(count_up(12));

std::shared_ptr<const TensorFile> open(std::string_view bytes) {
  TempDir dir;
  return TensorFile::open(dir.write("model.pt", bytes));
}

std::string open_error(std::string_view bytes) {
  return error_of([&] { open(bytes); });
}

std::vector<float> read(const TensorFile& file, const std::string& name) {
  std::vector<float> values(file.info(name).size);
  file.read(name, mx::float32, values.data());
  return values;
}

// {"w": tensor} over a storage of the floats 0..11.
std::string one_tensor(
    int64_t offset,
    const std::vector<int64_t>& shape,
    const std::vector<int64_t>& strides) {
  auto pickle = PickleWriter().raw("}").text("w");
  pickle.tensor("FloatStorage", "0", 12, offset, shape, strides).raw("s");
  return torch_archive(pickle.finish(), {{"0", twelve}});
}

} // namespace

TEST_CASE("crc32 of the check string") {
  CHECK(crc32(0, "123456789", 9) == 0xcbf43926);
  std::string text(1000, 'n');
  uint32_t halves = crc32(crc32(0, text.data(), 333), text.data() + 333, 667);
  CHECK(crc32(0, text.data(), text.size()) == halves);
}

TEST_CASE("a torch tensor is read by offset and strides") {
  CHECK(read(*open(one_tensor(0, {3, 4}, {4, 1})), "w") == count_up(12));
  CHECK(
      read(*open(one_tensor(0, {4, 3}, {1, 4})), "w") ==
      std::vector<float>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
  CHECK(
      read(*open(one_tensor(5, {2, 2}, {4, 2})), "w") ==
      std::vector<float>{5, 7, 9, 11});
  CHECK(
      read(*open(one_tensor(4, {4}, {1})), "w") ==
      std::vector<float>{4, 5, 6, 7});
  CHECK(
      read(*open(one_tensor(3, {2, 2}, {0, 0})), "w") ==
      std::vector<float>{3, 3, 3, 3});
  CHECK(read(*open(one_tensor(7, {}, {})), "w") == std::vector<float>{7});
  CHECK(read(*open(one_tensor(0, {0, 4}, {4, 1})), "w").empty());
  // The stride of a dimension of one is arbitrary in torch.
  CHECK(
      read(*open(one_tensor(8, {1, 4}, {999, 1})), "w") ==
      std::vector<float>{8, 9, 10, 11});
}

TEST_CASE("a torch tensor may not reach outside its storage") {
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
        open_error(one_tensor(offset, shape, strides)),
        "reaches outside its storage of 12 elements"));
  }
  CHECK(contains(
      open_error(one_tensor(0, {1 << 30, 1 << 10}, {0, 0})),
      "tensor 'w' of shape [1073741824, 1024] repeats a few stored elements"));
  CHECK(contains(open_error(one_tensor(0, {-1}, {1})), "dimension of -1"));
}

TEST_CASE("torch tensors can share a storage and differ in type") {
  auto pickle = PickleWriter().raw("}(");
  pickle.text("a").tensor("FloatStorage", "0", 12, 0, {12}, {1});
  pickle.text("b").tensor("FloatStorage", "0", 12, 6, {2}, {1});
  pickle.text("ids").tensor("LongStorage", "1", 2, 0, {2}, {1});
  pickle.text("flags").tensor("BoolStorage", "2", 3, 0, {3}, {1});
  pickle.text("bf").tensor("BFloat16Storage", "3", 1, 0, {1}, {1}).raw("u");
  auto file = open(torch_archive(
      pickle.finish(),
      {{"0", twelve},
       {"1", bytes_of(std::vector<int64_t>{-7, 6561})},
       {"2", std::string("\1\0\1", 3)},
       {"3", bytes_of(std::vector<uint16_t>{0x3fc0})}}));
  CHECK(read(*file, "a") == count_up(12));
  CHECK(read(*file, "b") == std::vector<float>{6, 7});
  CHECK(read(*file, "b") == std::vector<float>{6, 7}); // the sum is known now
  CHECK(read(*file, "bf") == std::vector<float>{1.5});
  std::vector<int32_t> ids(2);
  file->read("ids", mx::int32, ids.data());
  CHECK(ids == std::vector<int32_t>{-7, 6561});
  std::vector<int32_t> flags(3);
  file->read("flags", mx::int32, flags.data());
  CHECK(flags == std::vector<int32_t>{1, 0, 1});
}

TEST_CASE("nested dictionaries become dotted names and numbers scalars") {
  auto pickle = PickleWriter().raw("}(").text("t3").raw("}(");
  pickle.text("speaker_emb")
      .tensor("FloatStorage", "0", 12, 0, {1, 12}, {12, 1});
  pickle.text("clap_emb").raw("Nu").text("gen").raw("}(");
  pickle.text("prompt_token_len").integer(150);
  pickle.text("prompt_feat_len").raw("N").text("note").text("hello");
  pickle.text("gain").raw("G\x3f\xe0").raw(std::string(6, '\0')).raw("uu");
  auto file = open(torch_archive(pickle.finish(), {{"0", twelve}}));
  CHECK(file->names() == std::vector<std::string>{"t3.speaker_emb"});
  CHECK(file->info("t3.speaker_emb").shape == mx::Shape{1, 12});
  CHECK(file->scalar("gen.prompt_token_len") == 150.0);
  CHECK(file->scalar("gen.gain") == 0.5);
  CHECK(file->scalar("gen.prompt_feat_len") == std::nullopt);
}

TEST_CASE("a wrapper around the state dict is taken off") {
  auto wrapped = [](std::string open_list, std::string close_list) {
    auto pickle = PickleWriter().raw("}").text("model").raw(open_list);
    pickle.raw("}").text("w").tensor("FloatStorage", "0", 12, 0, {12}, {1});
    return torch_archive(
        pickle.raw("s").raw(close_list).raw("s").finish(), {{"0", twelve}});
  };
  CHECK(open(wrapped("", ""))->contains("w"));
  CHECK(open(wrapped("]", "a"))->contains("w"));
}

TEST_CASE("two tensors may not flatten to one name") {
  auto pickle = PickleWriter().raw("}(").text("a.b");
  pickle.tensor("FloatStorage", "0", 12, 0, {12}, {1}).text("a").raw("}");
  pickle.text("b").tensor("FloatStorage", "0", 12, 0, {12}, {1}).raw("su");
  CHECK(contains(
      open_error(torch_archive(pickle.finish(), {{"0", twelve}})),
      "the name 'a.b' appears twice"));
}

TEST_CASE("a torch archive must be whole") {
  auto pickle = PickleWriter().raw("}").text("w");
  pickle.tensor("FloatStorage", "0", 12, 0, {12}, {1}).raw("s");
  std::string data = pickle.finish();
  CHECK(contains(
      open_error(torch_archive(data, {})),
      "tensor 'w' needs zip entry 'archive/data/0', which is missing"));
  CHECK(contains(
      open_error(torch_archive(data, {{"0", twelve.substr(4)}})),
      "needs a storage of 12 elements, zip entry 'archive/data/0' has 44"));
  CHECK(contains(
      open_error(ZipWriter().add("archive/readme", "hi").finish()),
      "found no <name>/data.pkl"));
  CHECK(contains(
      open_error(
          ZipWriter().add("a/data.pkl", data).add("b/data.pkl", data).finish()),
      "more than one <name>/data.pkl"));
  CHECK(contains(
      open_error(ZipWriter()
                     .add("a/data.pkl", data)
                     .add("a/byteorder", "big")
                     .finish()),
      "the byte order is 'big', expected 'little'"));
  CHECK(contains(
      open_error(std::string("\x80\x02\x8a\x0a") + "rest"),
      "before torch 1.6; to convert it"));
}
