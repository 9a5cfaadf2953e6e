#include "nightingale/ops/norm.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

Values rms_norm_reference(Values x, const Values& w, double eps) {
  size_t channels = w.size();
  for (size_t row = 0; row < x.size(); row += channels) {
    double squares = 0.0;
    for (size_t c = 0; c < channels; ++c) {
      squares += x[row + c] * x[row + c];
    }
    for (size_t c = 0; c < channels; ++c) {
      x[row + c] *= w[c] / std::sqrt(squares / channels + eps);
    }
  }
  return x;
}

Values
layer_norm_reference(Values x, const Values& w, const Values& b, double eps) {
  size_t channels = w.size();
  for (size_t row = 0; row < x.size(); row += channels) {
    double mean = 0.0, variance = 0.0;
    for (size_t c = 0; c < channels; ++c) {
      mean += x[row + c] / channels;
    }
    for (size_t c = 0; c < channels; ++c) {
      variance += std::pow(x[row + c] - mean, 2) / channels;
    }
    for (size_t c = 0; c < channels; ++c) {
      x[row + c] =
          (x[row + c] - mean) / std::sqrt(variance + eps) * w[c] + b[c];
    }
  }
  return x;
}

Values norm_mish_reference(Values normed, const Values& shift) {
  for (size_t i = 0; i < normed.size(); ++i) {
    double x = normed[i];
    normed[i] = x * std::tanh(std::log1p(std::exp(x))) +
        (shift.empty() ? 0.0 : shift[i % shift.size()]);
  }
  return normed;
}

} // namespace

TEST_CASE("norms over the last axis, of any width and number of rows") {
  for (int channels : {1, 2, 15, 16, 17, 80, 512, 1024, 1031}) {
    for (int rows : {1, 2, 33}) {
      CAPTURE(channels);
      CAPTURE(rows);
      auto x = noise_array({1, rows, channels}, 1);
      auto w = noise_array({channels}, 2), b = noise_array({channels}, 3);
      Values rms = rms_norm_reference(values(x), values(w), 1e-5f);
      auto y = cpu::rms_norm(x, {w, 1e-5f}, cpu_stream());
      CHECK(relative_error(y, rms) < 1e-6);
      y = reference::rms_norm(x, {w, 1e-5f}, graph_stream());
      CHECK(relative_error(y, rms) < graph_tolerance(1e-6));

      Values layer =
          layer_norm_reference(values(x), values(w), values(b), 1e-5f);
      y = cpu::layer_norm(x, {w, b, 1e-5f}, mx::float32, cpu_stream());
      CHECK(relative_error(y, layer) < 1e-6);
      y = reference::layer_norm(x, {w, b, 1e-5f}, mx::float32, graph_stream());
      CHECK(relative_error(y, layer) < graph_tolerance(1e-6));
    }
  }
}

TEST_CASE("layer_norm of a small signal on a large offset") {
  auto numbers = noise(1024, 1);
  for (float& x : numbers) {
    x += 1000.0f;
  }
  auto x = array_of(numbers, {1, 1024});
  auto w = noise_array({1024}, 2), b = noise_array({1024}, 3);
  Values expected =
      layer_norm_reference(values(x), values(w), values(b), 1e-5f);
  // A float32 mean of 1000 is right to 6e-5, next to a deviation of 1.
  auto y = cpu::layer_norm(x, {w, b, 1e-5f}, mx::float32, cpu_stream());
  CHECK(relative_error(y, expected) < 1e-4);
}

TEST_CASE("norms of silence are zero, not NaN") {
  auto x = mx::zeros({2, 64}, mx::float32, cpu_stream());
  auto w = noise_array({64}, 1), b = noise_array({64}, 2);
  auto y = cpu::rms_norm(x, {w, 1e-5f}, cpu_stream());
  CHECK(values(y) == Values(128, 0.0));
  Values twice = values(b);
  twice.insert(twice.end(), twice.begin(), twice.begin() + 64);
  y = cpu::layer_norm(x, {w, b, 1e-5f}, mx::float32, cpu_stream());
  CHECK(values(y) == twice);
}

TEST_CASE("norms of every layout of their inputs") {
  auto x = noise_array({2, 3, 20}, 1);
  auto w = noise_array({20}, 2), b = noise_array({20}, 3);
  float eps = 1e-5f;
  for (auto [backend, norm, s] :
       backend_ops(cpu::rms_norm, reference::rms_norm)) {
    CAPTURE(backend);
    check_views(x, [&](auto& v) { return norm(v, {w, eps}, s); });
    check_views(w, [&](auto& v) { return norm(x, {v, eps}, s); });
  }
  for (auto [backend, norm, s] :
       backend_ops(cpu::layer_norm, reference::layer_norm)) {
    CAPTURE(backend);
    check_views(
        x, [&](auto& v) { return norm(v, {w, b, eps}, mx::float32, s); });
    check_views(
        w, [&](auto& v) { return norm(x, {v, b, eps}, mx::float32, s); });
    check_views(
        b, [&](auto& v) { return norm(x, {w, v, eps}, mx::float32, s); });
  }
}

TEST_CASE("norms of half inputs are computed in float32 on the CPU") {
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    auto x = noise_array({3, 70}, 1, dtype);
    auto w = noise_array({70}, 2, dtype), b = noise_array({70}, 3, dtype);
    Values rms = rms_norm_reference(values(x), values(w), 1e-5f);
    Values layer = layer_norm_reference(values(x), values(w), values(b), 1e-5f);
    auto y = cpu::rms_norm(x, {w, 1e-5f}, cpu_stream());
    CHECK(relative_error(y, rms) < 1e-6);
    y = cpu::layer_norm(x, {w, b, 1e-5f}, mx::float32, cpu_stream());
    CHECK(relative_error(y, layer) < 1e-6);
  }
}

TEST_CASE("norms store their result in the type that is asked for") {
  auto w = noise_array({70}, 2), b = noise_array({70}, 3);
  auto shift = noise_array({70}, 4);
  for (mx::Dtype from : kFloatTypes) {
    auto x = noise_array({33, 70}, 1, from);
    auto exact = cpu::layer_norm(x, {w, b, 1e-5f}, mx::float32, cpu_stream());
    auto shifted =
        cpu::norm_mish(x, {w, b, 1e-5f}, shift, mx::float32, cpu_stream());
    for (mx::Dtype to : kFloatTypes) {
      auto y = cpu::layer_norm(x, {w, b, 1e-5f}, to, cpu_stream());
      CHECK(y.dtype() == to);
      CHECK(same_bits(y, cpu::cast(exact, to, cpu_stream())));
      y = cpu::norm_mish(x, {w, b, 1e-5f}, shift, to, cpu_stream());
      CHECK(y.dtype() == to);
      CHECK(same_bits(y, cpu::cast(shifted, to, cpu_stream())));
    }
  }
}

TEST_CASE("norm_mish is the norm, then mish, then the shift") {
  for (int channels : {1, 15, 16, 80, 256, 1031}) {
    for (int rows : {1, 2, 33}) {
      CAPTURE(channels);
      CAPTURE(rows);
      auto x = noise_array({1, rows, channels}, 1);
      auto w = noise_array({channels}, 2), b = noise_array({channels}, 3);
      auto shift = noise_array({channels}, 4);
      Values normed =
          layer_norm_reference(values(x), values(w), values(b), 1e-5f);
      for (bool shifts : {false, true}) {
        CAPTURE(shifts);
        auto added = shifts ? std::optional(shift) : std::nullopt;
        Values expected =
            norm_mish_reference(normed, shifts ? values(shift) : Values{});
        for (auto [backend, norm, s] :
             backend_ops(cpu::norm_mish, reference::norm_mish)) {
          CAPTURE(backend);
          auto y = norm(x, {w, b, 1e-5f}, added, mx::float32, s);
          CHECK(
              relative_error(y, expected) <
              (backend == "cpu" ? 1e-6 : graph_tolerance(2e-6)));
        }
      }
    }
  }
}

TEST_CASE("norm_mish of every layout of its inputs") {
  auto x = noise_array({2, 3, 20}, 1), w = noise_array({20}, 2);
  check_views(x, [&](auto& v) {
    return cpu::norm_mish(v, {w, w, 1e-5f}, w, mx::float32, cpu_stream());
  });
  check_views(w, [&](auto& v) {
    return cpu::norm_mish(x, {w, w, 1e-5f}, v, mx::float32, cpu_stream());
  });
}
