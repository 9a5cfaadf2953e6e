#include "nightingale/ops/shared_frames.h"

#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/attention.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/error.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

// Solutions of different lengths in one array.

namespace {

// Frames [0, count) of sequences [begin, end).
mx::array part(const mx::array& x, int begin, int end, int count) {
  auto s = cpu_stream();
  auto frames =
      mx::slice(x, {begin, 0, 0}, {end, count, x.shape(2)}, cpu_stream());
  return mx::contiguous(frames, false, s);
}

// [sequences, frames, C] filled up with `value` to `rows` frames.
mx::array filled(const mx::array& x, int rows, float value) {
  auto fill = mx::array(value, x.dtype());
  std::vector<std::pair<int, int>> width{
      {0, 0}, {0, rows - x.shape(1)}, {0, 0}};
  return mx::pad(x, width, fill, "constant", cpu_stream());
}

} // namespace

TEST_CASE("kernel join_inputs: up to eight, of any lengths") {
  auto s = kernel_stream();
  for (auto lengths :
       {std::vector{5},
        std::vector{16, 17},
        std::vector{2, 9, 4},
        std::vector{3, 1, 40, 12, 7},
        std::vector{8, 7, 6, 5, 4, 3, 2, 1}}) {
    for (auto [sequences, dtype] :
         {std::pair(2, mx::float16), {1, mx::bfloat16}, {2, mx::float32}}) {
      CAPTURE(lengths.size());
      CAPTURE(dtype);
      std::vector<ops::OdeState> states;
      std::vector<mx::array> expected;
      int rows = (std::ranges::max(lengths) + 15) / 16 * 16;
      for (int length : lengths) {
        auto seed = static_cast<uint32_t>(states.size());
        auto input = noise_array({sequences, length, 24}, seed + 1, dtype);
        states.push_back({noise_array({1, length, 8}, 2), input});
        expected.push_back(filled(input, rows, 0.0f));
      }
      std::vector<const ops::OdeState*> pointers;
      for (auto& state : states) {
        pointers.push_back(&state);
      }
      auto joined = ops::join_inputs(pointers, s);
      CHECK(joined.layout.lengths == lengths);
      CHECK(joined.layout.sequences() == sequences);
      CHECK(same_bits(joined.x, mx::concatenate(expected, 0, cpu_stream())));
    }
  }
}

TEST_CASE("kernel tile_attention: solutions of several lengths as alone") {
  const std::vector<int> lengths{70, 33, 64, 5};
  constexpr int heads = 2, sequences = 2, rows = 80;
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    CAPTURE(dtype);
    std::vector<mx::array> alone, all;
    for (int length : lengths) {
      uint32_t seed = length;
      auto qkv = noise_array({sequences, length, 3 * heads * 64}, seed, dtype);
      alone.push_back(
          gpu::tile_attention(qkv, sequences, heads, kernel_stream()));
      all.push_back(filled(qkv, rows, NAN));
    }
    auto y = gpu::tile_attention(
        mx::concatenate(all, 0, cpu_stream()),
        {sequences * static_cast<int>(lengths.size()), lengths},
        heads,
        kernel_stream());
    y = mx::reshape(y, {-1, rows, heads * 64}, cpu_stream());
    for (size_t i = 0; i < lengths.size(); ++i) {
      CAPTURE(i);
      int begin = sequences * i;
      auto found = part(y, begin, begin + sequences, lengths[i]);
      CHECK(values(found) == values(alone[i]));
    }
  }
}

TEST_CASE("frames of several solutions are refused without tiles") {
  auto s = kernel_stream();
  auto qkv = noise_array({4, 6, 3 * 64}, 1);
  CHECK_THROWS_AS(ops::frame_attention(qkv, {4, {6, 5}}, 1, s), Error);
}
