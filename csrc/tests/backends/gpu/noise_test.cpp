#include <doctest/doctest.h>

#include "kernel_stream.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("kernel normal_noise: the CPU's draws, whatever is drawn beside") {
  for (auto [rows, columns] :
       {std::pair{1, 1}, {1, 2}, {5, 7}, {3, 80}, {40, 81}, {2, 4320}}) {
    for (uint64_t seed : {0ull, 1ull, 0x123456789abcdef0ull}) {
      CAPTURE(rows);
      CAPTURE(columns);
      DrawPosition first{
          seed, DrawStage::flow_frame, 3, seed == 1 ? 4'000'000'000u : 7u};
      auto y = gpu::normal_noise(first, rows, columns, kernel_stream());
      auto expected = cpu::normal_noise(first, rows, columns, cpu_stream());
      Values found = values(y), draws = values(expected);
      REQUIRE(found.size() == draws.size());
      for (size_t i = 0; i < found.size(); ++i) {
        REQUIRE(found[i] == doctest::Approx(draws[i]).epsilon(2e-6));
      }
    }
  }
}
