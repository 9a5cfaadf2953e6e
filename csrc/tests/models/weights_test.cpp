#include "nightingale/models/weights.h"

#include <doctest/doctest.h>

#include "io/file_writers.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

Weights open_weights(mx::Dtype dtype = mx::float32) {
  TempDir dir;
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  return Weights(
      TensorFile::open(dir.write(
          "model.safetensors",
          SafetensorsWriter()
              .add("layer.q.weight", "F32", "[2,3]", bytes_of(values))
              .add("layer.k.weight", "F32", "[2,3]", bytes_of(values))
              .add(
                  "layer.v.weight", "F32", "[1,3]", bytes_of(values).substr(12))
              .add("rope.freqs", "F32", "[2]", bytes_of(values).substr(16))
              .add("ids", "I64", "[1]", little_endian(int64_t(6561)))
              .finish())),
      dtype);
}

} // namespace

TEST_CASE("take gives the tensor in the type asked for") {
  Weights weights = open_weights(mx::bfloat16);
  auto q = weights.take("layer.q.weight", {2, -1});
  CHECK(q.dtype() == mx::bfloat16);
  CHECK(q.shape() == mx::Shape{2, 3});
  CHECK(float(q.data<mx::bfloat16_t>()[5]) == 5.0f);
  auto k = weights.take("layer.k.weight", {2, 3}, mx::float32);
  CHECK(floats(k) == std::vector<float>{0, 1, 2, 3, 4, 5});
  auto ids = weights.take("ids", {1}, mx::int32);
  CHECK(ids.data<int32_t>()[0] == 6561);
  CHECK(weights.nbytes() == 12 + 24 + 4);
}

TEST_CASE("take_rows stacks tensors in one buffer") {
  Weights weights = open_weights();
  auto qkv = weights.take_rows(
      {"layer.q.weight", "layer.k.weight", "layer.v.weight"}, {-1, 3});
  CHECK(qkv.shape() == mx::Shape{5, 3});
  CHECK(
      floats(qkv) ==
      std::vector<float>{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5, 3, 4, 5});
  CHECK(weights.nbytes() == 60);
  CHECK(contains(
      error_of([&] {
        weights.take_rows({"layer.q.weight", "rope.freqs"}, {-1, -1});
      }),
      "rope.freqs: expected [any, 3], found [2]"));
}

TEST_CASE("a large tensor survives the advice about its pages") {
  std::vector<float> values(3'000'000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = float(i);
  }
  TempDir dir;
  Weights weights(
      TensorFile::open(dir.write(
          "x",
          SafetensorsWriter()
              .add("x", "F32", "[3000000]", bytes_of(values))
              .finish())),
      mx::float32);
  CHECK(floats(weights.take("x", {-1})) == values);
}

TEST_CASE("errors name the file, the tensor, what was seen and expected") {
  Weights weights = open_weights();
  auto take_error = [&](const std::string& name,
                        const mx::Shape& shape,
                        mx::Dtype dtype) {
    std::string message = error_of([&] { weights.take(name, shape, dtype); });
    CHECK(contains(message, "model.safetensors: " + name + ": "));
    return message;
  };
  CHECK(contains(
      take_error("layer.q.weight", {2, 4}, mx::float32),
      "layer.q.weight: expected [2, 4], found [2, 3]"));
  CHECK(contains(
      take_error("layer.q.weight", {-1, 2, 3}, mx::float32),
      "expected [any, 2, 3], found [2, 3]"));
  CHECK(contains(
      take_error("layer.q.wieght", {2, 3}, mx::float32),
      "there is no such tensor; the nearest name is 'layer.q.weight'"));
  CHECK(!contains(
      take_error("vocoder.conv_pre.weight", {2, 3}, mx::float32), "nearest"));
  CHECK(contains(
      take_error("ids", {1}, mx::float32),
      "expected a float type to read as float32, found int64"));
  CHECK(contains(
      take_error("rope.freqs", {2}, mx::int32),
      "expected an integer type to read as int32, found float32"));
  CHECK(contains(
      error_of([&] { weights.shape("nothing"); }),
      "nothing: there is no such"));
  CHECK(weights.nbytes() == 0);
}

TEST_CASE("unused lists what was neither taken nor ignored") {
  Weights weights = open_weights();
  weights.take("layer.q.weight", {2, 3});
  CHECK(
      weights.unused({"layer.v.*", "ids"}) ==
      std::vector<std::string>{"layer.k.weight", "rope.freqs"});
  CHECK(weights.unused({"*"}).empty());
  CHECK(weights.has("ids"));
  CHECK_FALSE(weights.has("layer"));
}
