#pragma once

// Inputs that are the same in every run, views of them that are not dense, and
// comparison with values computed in double precision.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "mlx/ops.h"
#include "mlx/stream.h"
#include "mlx/transforms.h"
#include "nightingale/ops/backend.h"

namespace nightingale::testing {

using Values = std::vector<double>;

inline mx::Stream cpu_stream() {
  return mx::default_stream(mx::Device::cpu);
}

inline bool has_gpu() {
  return mx::is_available(mx::Device::gpu);
}

// Where the graphs of MLX ops run: on a GPU where there is one.
inline mx::Stream graph_stream() {
  return mx::default_stream(has_gpu() ? mx::Device::gpu : mx::Device::cpu);
}

// An op on a backend, and where that runs.
template <typename Op>
struct BackendOp {
  std::string name;
  Op* run;
  mx::Stream stream;
};

template <typename Op>
std::vector<BackendOp<Op>> backend_ops(Op* cpu, Op* graph) {
  return {{"cpu", cpu, cpu_stream()}, {"graph", graph, graph_stream()}};
}

// GPUs may multiply in TF32 and take fast exponentials.
inline double graph_tolerance(double on_cpu) {
  return has_gpu() ? std::max(on_cpu, 5e-3) : on_cpu;
}

inline const std::vector<mx::Dtype> kFloatTypes{
    mx::float32,
    mx::float16,
    mx::bfloat16};

// Roughly normal numbers, in float32 and in the order of `seed`.
inline std::vector<float> noise(size_t count, uint32_t seed) {
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  auto uniform = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(state >> 40) * 0x1p-24f;
  };
  std::vector<float> numbers(count);
  for (float& x : numbers) {
    x = (uniform() + uniform() + uniform() + uniform() - 2.0f) * 1.7f;
  }
  return numbers;
}

inline mx::array array_of(
    const std::vector<float>& numbers,
    mx::Shape shape,
    mx::Dtype dtype = mx::float32) {
  mx::array x(numbers.data(), std::move(shape));
  auto typed = mx::astype(x, dtype, cpu_stream());
  mx::eval(typed);
  return typed;
}

inline mx::array
noise_array(mx::Shape shape, uint32_t seed, mx::Dtype dtype = mx::float32) {
  size_t count = 1;
  for (int size : shape) {
    count *= size;
  }
  return array_of(noise(count, seed), std::move(shape), dtype);
}

// Row-major, whatever the array's layout and floating type.
inline std::vector<float> floats(const mx::array& x) {
  auto s = cpu_stream();
  auto dense = mx::contiguous(mx::astype(x, mx::float32, s), false, s);
  mx::eval(dense);
  return {dense.data<float>(), dense.data<float>() + dense.size()};
}

inline Values values(const mx::array& x) {
  auto numbers = floats(x);
  return {numbers.begin(), numbers.end()};
}

// The largest difference, relative to the largest finite expected magnitude.
// Infinities must be equal; a NaN or a wrong size is an infinite error.
inline double relative_error(const Values& actual, const Values& expected) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  if (actual.size() != expected.size()) {
    return wrong;
  }
  double largest = 1e-30, error = 0.0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (actual[i] == expected[i]) {
      largest = std::max(
          largest, std::isfinite(expected[i]) ? std::fabs(expected[i]) : 0.0);
      continue;
    }
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) {
      return wrong;
    }
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(actual[i] - expected[i]));
  }
  return error / largest;
}

inline double relative_error(const mx::array& actual, const Values& expected) {
  return relative_error(values(actual), expected);
}

inline bool same_bits(
    const std::vector<float>& a,
    const std::vector<float>& b) {
  return a.size() == b.size() &&
      std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

inline bool same_bits(const mx::array& a, const mx::array& b) {
  return same_bits(floats(a), floats(b));
}

// Rows [begin, end) of [B, T, C].
inline mx::array rows_of(const mx::array& x, int begin, int end) {
  return mx::slice(
      x, {0, begin, 0}, {x.shape(0), end, x.shape(2)}, cpu_stream());
}

struct View {
  std::string name;
  mx::array array;
};

// `x` laid out in memory in ways that are not row-major, each both computed
// and still to be computed, which ops tell apart.
inline std::vector<View> views_of(const mx::array& x) {
  auto s = cpu_stream();
  int last = x.ndim() - 1, width = x.shape(last);
  // Columns [from, from + step * width) of a wider array, by `step`.
  auto columns = [=](const mx::array& wide, int from, int step) {
    mx::Shape begin(wide.ndim(), 0), end = wide.shape(), steps(wide.ndim(), 1);
    begin[last] = from;
    end[last] = from + step * width;
    steps[last] = step;
    return mx::slice(wide, begin, end, steps, s);
  };
  auto make = [=](const std::string& name) {
    if (name == "columns of a wider array") {
      auto other = mx::negative(x, s);
      return columns(mx::concatenate({other, x, other}, last, s), width, 1);
    }
    if (name == "every second column") {
      auto pairs = mx::stack({x, mx::negative(x, s)}, last + 1, s);
      return columns(mx::flatten(pairs, last, last + 1, s), 0, 2);
    }
    auto turned = mx::contiguous(mx::swapaxes(x, -1, -2, s), false, s);
    return mx::swapaxes(turned, -1, -2, s);
  };

  std::vector<std::string> names{
      "columns of a wider array", "every second column"};
  if (x.ndim() > 1) {
    names.push_back("transposed in memory");
  }
  std::vector<View> views;
  for (const auto& name : names) {
    views.push_back({name + ", lazy", make(name)});
    auto computed = make(name);
    mx::eval(computed);
    views.push_back({name, computed});
  }
  return views;
}

// `op` gives the same for every layout of its input.
template <typename Op>
void check_views(const mx::array& x, Op op) {
  Values expected = values(op(x));
  for (const auto& view : views_of(x)) {
    CAPTURE(view.name);
    CHECK(relative_error(op(view.array), expected) < graph_tolerance(1e-6));
  }
}

} // namespace nightingale::testing
