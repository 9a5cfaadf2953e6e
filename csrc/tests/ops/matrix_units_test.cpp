// bfloat16 on the processor's matrix units, where it has them.

#include "nightingale/backends/cpu/matrix_units.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "attention_reference.h"
#include "backends/cpu/thread_count.h"
#include "epilogue_reference.h"
#include "nightingale/backends/cpu/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Results are rounded to 8 bits, or are float32 where the residual is.
double rounding(const mx::array& y) {
  return y.dtype() == mx::bfloat16 ? 4e-3 : 2e-6;
}

mx::array wide(const mx::array& x) {
  return mx::astype(x, mx::float32, cpu_stream());
}

// Products of bfloat16 numbers are exact in float32, so that the float32 form
// gives the same but for the order of its sums.
void check_product(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape) {
  auto s = cpu_stream();
  auto sums = cpu::conv1d(wide(x), wide(w), {shape}, s);
  for (mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
    int index = 0;
    for (const auto& epilogue : epilogues(sums.shape(), dtype)) {
      CAPTURE(index++);
      Values expected =
          apply_epilogue_reference(values(sums), w.shape(0), epilogue);
      auto y = cpu::conv1d(x, w, {shape, epilogue}, s);
      CHECK(y.dtype() == epilogue.result_dtype(x));
      CHECK(relative_error(y, expected) < rounding(y));
    }
  }
}

mx::array half_noise(const mx::Shape& shape, uint32_t seed) {
  return noise_array(shape, seed, mx::bfloat16);
}

} // namespace

TEST_CASE("bfloat16 linear sums in float32, with every epilogue") {
  auto s = cpu_stream();
  for (int rows : {1, 16, 17, 31, 32, 33, 64, 300}) {
    for (auto [inner, outer] :
         {std::pair(1, 1),
          std::pair(32, 16),
          std::pair(80, 33),
          std::pair(256, 130)}) {
      CAPTURE(rows);
      CAPTURE(inner);
      CAPTURE(outer);
      auto x = half_noise({1, rows, inner}, 1);
      auto w = half_noise({outer, inner}, 2);
      auto sums = values(cpu::linear(wide(x), wide(w), {}, s));
      for (mx::Dtype dtype : {mx::float32, mx::bfloat16}) {
        for (const auto& epilogue : epilogues({1, rows, outer}, dtype)) {
          Values expected = apply_epilogue_reference(sums, outer, epilogue);
          auto y = cpu::linear(x, w, epilogue, s);
          CHECK(y.dtype() == epilogue.result_dtype(x));
          CHECK(relative_error(y, expected) < rounding(y));
        }
      }
    }
  }
}

TEST_CASE("bfloat16 linear whose packed weights are used in several parts") {
  auto s = cpu_stream();
  auto x = half_noise({40, 4160}, 1), w = half_noise({300, 4160}, 2);
  auto residual = noise_array({40, 300}, 3);
  auto y = cpu::linear(x, w, {.residual = residual}, s);
  auto expected = cpu::linear(wide(x), wide(w), {.residual = residual}, s);
  CHECK(relative_error(y, values(expected)) < 1e-5);
}

TEST_CASE("bfloat16 conv1d sums in float32, with every epilogue") {
  for (int length : {1, 20, 100}) {
    for (int channels : {7, 32, 80}) {
      for (int stride : {1, 3}) {
        for (int dilation : {1, 5}) {
          CAPTURE(length);
          CAPTURE(channels);
          CAPTURE(stride);
          CAPTURE(dilation);
          check_product(
              half_noise({2, length, channels}, 1),
              half_noise({40, 3, channels}, 2),
              {stride, dilation, 1, 2 * dilation, 3});
        }
      }
    }
  }
}

TEST_CASE("bfloat16 grouped conv1d is computed in float32") {
  for (int groups : {2, 32}) {
    check_product(
        half_noise({1, 50, 32}, 1),
        half_noise({32, 3, 32 / groups}, 2),
        {.groups = groups, .pad_left = 2});
  }
}

TEST_CASE("bfloat16 full attention is near that of float32") {
  auto s = cpu_stream();
  for (int head_dim : {8, 32, 64, 96}) {
    for (auto [rows, keys] :
         {std::pair(1, 1),
          std::pair(5, 33),
          std::pair(33, 16),
          std::pair(100, 100),
          std::pair(64, 250)}) {
      CAPTURE(head_dim);
      CAPTURE(rows);
      CAPTURE(keys);
      auto q = half_noise({2, rows, 2 * head_dim}, 1);
      auto k = half_noise({2, keys, 2 * head_dim}, 2);
      auto v = half_noise({2, keys, 2 * head_dim}, 3);
      auto y = cpu::full_attention({q, k, v, 2}, s);
      CHECK(y.dtype() == mx::bfloat16);
      CHECK(y.shape() == q.shape());
      Values expected = attention_reference(q, k, v, 2, false);
      CHECK(relative_error(y, expected) < 1e-2);
    }
  }
}

TEST_CASE("bfloat16 full attention reads the parts of one array in place") {
  auto s = cpu_stream();
  auto parts = mx::split(half_noise({2, 50, 3 * 128}, 1), 3, -1, s);
  auto y = cpu::full_attention({parts[0], parts[1], parts[2], 2}, s);
  if (cpu::has_bf16_matrix_units()) {
    CHECK(y.inputs()[1].id() == parts[1].id());
  }
  Values expected = attention_reference(parts[0], parts[1], parts[2], 2, false);
  CHECK(relative_error(y, expected) < 1e-2);
}

TEST_CASE("bfloat16 full attention with scores far apart takes the best key") {
  // Powers of two that are too small must not become large.
  for (float other : {59.0f, 50.0f, 30.0f, -1.0f, -10.0f, -50.0f, -100.0f}) {
    CAPTURE(other);
    std::vector<float> q(64), k(3 * 64), v(3 * 64);
    q[0] = 1000.0f;
    for (int t = 0; t < 3; ++t) {
      k[t * 64] = t == 1 ? 60.0f : other;
      v[t * 64] = t == 1 ? 3.0f : 7.0f;
    }
    auto y = floats(cpu::full_attention(
        {array_of(q, {1, 1, 64}, mx::bfloat16),
         array_of(k, {1, 3, 64}, mx::bfloat16),
         array_of(v, {1, 3, 64}, mx::bfloat16),
         1},
        cpu_stream()));
    CHECK(y[0] == 3.0f);
  }
}

TEST_CASE("no bfloat16 result depends on the number of threads") {
  auto s = cpu_stream();
  auto x = half_noise({2, 130, 192}, 1), w = half_noise({70, 3, 192}, 2);
  auto attend = [&] { return cpu::full_attention({x, x, x, 3}, s); };
  auto convolve = [&] { return cpu::conv1d(x, w, {{.pad_left = 2}}, s); };
  std::vector<std::function<mx::array()>> works{attend, convolve};
  for (const auto& work : works) {
    std::vector<float> alone;
    {
      ThreadCount one(1);
      alone = floats(work());
    }
    for (int threads : {2, 3}) {
      ThreadCount count(threads);
      CHECK(same_bits(floats(work()), alone));
    }
  }
}

TEST_CASE("bfloat16 linear of many rows is batch-invariant") {
  auto s = cpu_stream();
  auto x = half_noise({1, 150, 133}, 1), w = half_noise({70, 133}, 2);
  auto whole = floats(cpu::linear(x, w, {}, s));
  for (auto [begin, end] : {std::pair(0, 17), std::pair(5, 62)}) {
    auto part = floats(cpu::linear(rows_of(x, begin, end), w, {}, s));
    std::vector<float> same(
        whole.begin() + begin * 70, whole.begin() + end * 70);
    CHECK(same_bits(part, same));
  }
}
