#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "models/s3gen/tiny_s3gen.h"
#include "nightingale/models/hift/vocoder.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

mx::array tiny_mel(int frames) {
  return noise_array({frames, kMels}, 31);
}

std::shared_ptr<const Vocoder> vocoder_on(
    mx::Stream s,
    const TinyS3Gen& model = {},
    const FilterFormat& format = {}) {
  TempDir dir;
  auto path = dir.write("s3gen.safetensors", model.checkpoint());
  return std::make_shared<const Vocoder>(
      Vocoder::load(TensorFile::open(path), s, nullptr, format));
}

Values in_chunks(
    const Vocoder& vocoder,
    const mx::array& mel,
    const std::vector<int>& sizes) {
  auto state = vocoder.begin({.seed = 5});
  Values samples;
  int begin = 0, frames = mel.shape(0);
  for (int size : sizes) {
    auto chunk =
        mx::slice(mel, {begin, 0}, {begin + size, kMels}, cpu_stream());
    begin += size;
    auto fresh = values(vocoder.feed(state, chunk, begin == frames));
    samples.insert(samples.end(), fresh.begin(), fresh.end());
  }
  return samples;
}

} // namespace

TEST_CASE("a GPU's vocoder sounds as the CPU's, whole and in chunks") {
  EmulatedGpu gpu;
  auto vocoder = vocoder_on(kernel_stream());
  auto mel = tiny_mel(46);
  Values expected = in_chunks(*tiny_vocoder(), mel, {46});
  for (const auto& sizes :
       {std::vector<int>{46}, {30, 16}, {3, 19, 1, 20, 3}, {46, 0}}) {
    CAPTURE(sizes.size());
    Values samples = in_chunks(*vocoder, mel, sizes);
    REQUIRE(samples.size() == expected.size());
    CHECK(relative_error(samples, expected) < graph_tolerance(1e-3));
  }
}

TEST_CASE("a chunk costs a GPU as many launches as the whole") {
  EmulatedGpu gpu;
  auto vocoder = vocoder_on(kernel_stream());
  auto mel = tiny_mel(60);
  auto state = vocoder->begin({});
  auto launches = [&](int begin, int end, bool last) {
    long before = gpu::kernel_launches();
    auto chunk = mx::slice(mel, {begin, 0}, {end, kMels}, cpu_stream());
    mx::eval(vocoder->feed(state, chunk, last));
    return gpu::kernel_launches() - before;
  };
  launches(0, 20, false);
  CHECK(launches(20, 40, false) <= 190);
  CHECK(launches(40, 60, true) <= 190);
}

TEST_CASE("blocks in float16 sound nearly the same, in fewer launches") {
  EmulatedGpu gpu;
  KernelLimits limits({.tiles = true});
  auto s = kernel_stream();
  if (!gpu::has_tiles(s)) {
    return; // a Mac
  }
  TinyS3Gen wide{.vocoder = 256};
  auto mel = tiny_mel(6);
  long before = gpu::kernel_launches();
  Values floats = in_chunks(*vocoder_on(s, wide), mel, {6});
  long by_floats = gpu::kernel_launches() - before;
  for (const auto& sizes : {std::vector<int>{6}, {4, 2}}) {
    CAPTURE(sizes.size());
    before = gpu::kernel_launches();
    Values halves =
        in_chunks(*vocoder_on(s, wide, {.halves = true}), mel, sizes);
    long launches = gpu::kernel_launches() - before;
    REQUIRE(halves.size() == floats.size());
    CHECK(relative_error(halves, floats) < graph_tolerance(2e-3));
    CHECK(relative_error(halves, floats) > 0);
    CHECK(launches < long(sizes.size()) * by_floats);
  }
}
