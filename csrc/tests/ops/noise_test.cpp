#include "nightingale/ops/noise.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr uint64_t kSeed = 0x1234567890abcdef;

double normal_below(double z) {
  return 0.5 * std::erfc(-z * std::sqrt(0.5));
}

} // namespace

TEST_CASE("normal_noise inverts the normal distribution at its words") {
  for (int columns : {1, 2, 3, 80, 4321}) {
    CAPTURE(columns);
    for (auto [backend, draw, s] :
         backend_ops(cpu::normal_noise, reference::normal_noise)) {
      CAPTURE(backend);
      auto x = draw({kSeed, DrawStage::flow_frame, 3, 17}, 5, columns, s);
      CHECK(x.shape() == mx::Shape{5, columns});
      Values y = values(x);
      double worst = 0.0;
      for (int r = 0; r < 5; ++r) {
        auto position = static_cast<uint32_t>(17 + r);
        DrawKey key = draw_key({kSeed, DrawStage::flow_frame, 3, position});
        for (int c = 0; c < columns; ++c) {
          double middle = ((random_word(key, c, columns) >> 9) + 0.5) * 0x1p-23;
          double below = normal_below(y[r * columns + c]);
          worst = std::max(worst, std::fabs(below - middle));
        }
      }
      CHECK(worst < 3e-7);
    }
  }
}

TEST_CASE("both backends of normal_noise draw the same numbers") {
  for (int columns : {7, 4320}) {
    DrawPosition first{7, DrawStage::source_noise, 0};
    auto on_cpu = cpu::normal_noise(first, 20, columns, cpu_stream());
    auto graph = reference::normal_noise(first, 20, columns, graph_stream());
    CHECK(relative_error(on_cpu, values(graph)) < 1e-6);
  }
}

TEST_CASE("a row of noise is the same whatever is drawn beside it") {
  auto s = cpu_stream();
  auto draw = [&](uint32_t first, int rows) {
    return floats(
        cpu::normal_noise({1, DrawStage::flow_frame, 2, first}, rows, 80, s));
  };
  auto whole = draw(100, 50), part = draw(117, 9);
  CHECK(std::equal(part.begin(), part.end(), whole.begin() + 17 * 80));
}

TEST_CASE("a million numbers of noise are normal and unrelated") {
  constexpr int rows = 250, columns = 4320;
  auto numbers = values(cpu::normal_noise(
      {42, DrawStage::source_noise, 1}, rows, columns, cpu_stream()));
  double count = numbers.size(), moments[5] = {}, beside = 0, under = 0;
  for (size_t i = 0; i < numbers.size(); ++i) {
    double x = numbers[i], power = 1;
    for (int k = 0; k < 5; ++k, power *= x) {
      moments[k] += power / count;
    }
    beside += i + 1 < numbers.size() ? x * numbers[i + 1] / count : 0;
    under +=
        i + columns < numbers.size() ? x * numbers[i + columns] / count : 0;
  }
  // Four deviations of each estimate.
  double unit = 4 / std::sqrt(count);
  CHECK(std::fabs(moments[1]) < unit);
  CHECK(std::fabs(moments[2] - 1) < std::sqrt(2.0) * unit);
  CHECK(std::fabs(moments[3]) < std::sqrt(15.0) * unit);
  CHECK(std::fabs(moments[4] - 3) < std::sqrt(96.0) * unit);
  CHECK(std::fabs(beside) < unit);
  CHECK(std::fabs(under) < unit);

  std::ranges::sort(numbers);
  double distance = 0; // of Kolmogorov and Smirnov
  for (size_t i = 0; i < numbers.size(); ++i) {
    double below = normal_below(numbers[i]);
    distance = std::max({distance, below - i / count, (i + 1) / count - below});
  }
  CHECK(distance < 1.63 / std::sqrt(count)); // at one in a hundred
}
