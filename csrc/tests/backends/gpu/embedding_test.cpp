#include <doctest/doctest.h>

#include "emulated_gpu.h"
#include "nightingale/ops/embedding.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("kernel embed_token: a token and its position, for every row") {
  EmulatedGpu as_gpu;
  auto s = kernel_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int channels : {1, 31, 1024, 1500}) {
      CAPTURE(channels);
      auto table = noise_array({7, channels}, 1, dtype);
      auto positions = noise_array({5, channels}, 2, dtype);
      auto sounds = values(table), where = values(positions);
      for (int rows : {1, 2}) {
        for (auto [token, position] : {std::pair{0, 4}, {6, 0}, {3, 2}}) {
          auto y = ops::embed_token(
              {table, positions, mx::array({token}), position, rows}, s);
          Values expected;
          for (int r = 0; r < rows; ++r) {
            for (int i = 0; i < channels; ++i) {
              expected.push_back(
                  sounds[token * channels + i] +
                  where[position * channels + i]);
            }
          }
          CHECK(y.dtype() == mx::float32);
          CHECK(y.shape() == mx::Shape{rows, 1, channels});
          CHECK(relative_error(y, expected) < 1e-6);
        }
      }
    }
  }
}
