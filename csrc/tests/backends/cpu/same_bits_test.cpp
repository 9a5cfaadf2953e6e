// The same work gives the same bits: whatever the number of rows, threads and
// runs. Tokens and audio are reproducible only if this holds.

#include <doctest/doctest.h>

#include <functional>

#include "backends/cpu/thread_count.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

struct Work {
  std::string name;
  std::function<mx::array()> run;
};

// Every op that spreads its work, at sizes of several tiles.
std::vector<Work> works() {
  auto s = cpu_stream();
  std::vector<Work> all;
  for (mx::Dtype dtype : kFloatTypes) {
    for (int rows : {1, 2, 16, 300}) {
      all.push_back({"linear", [=] {
                       return cpu::linear(
                           noise_array({rows, 133}, 1),
                           noise_array({523, 133}, 2, dtype),
                           {.bias = noise_array({523}, 3),
                            .activation = ops::Activation::gelu,
                            .residual = noise_array({rows, 523}, 4)},
                           s);
                     }});
    }
    for (int rows : {1, 16, 100}) {
      all.push_back({"cached_attention", [=] {
                       return cpu::cached_attention(
                           {noise_array({2, rows, 256}, 1), 50},
                           {noise_array({2, 4, 150, 64}, 2, dtype),
                            noise_array({2, 4, 150, 64}, 3, dtype)},
                           s);
                     }});
    }
  }
  auto x = noise_array({2, 130, 192}, 5), w = noise_array({192}, 6);
  all.push_back(
      {"full_attention", [=] { return cpu::full_attention({x, x, x, 4}, s); }});
  all.push_back({"relative_attention", [=] {
                   auto positions = noise_array({259, 192}, 8);
                   return cpu::relative_attention(
                       {x, x, x, 4}, {positions, w, w}, s);
                 }});
  all.push_back({"conv1d", [=] {
                   auto kernel = noise_array({70, 3, 192}, 7);
                   return cpu::conv1d(x, kernel, {{.pad_left = 2}}, s);
                 }});
  all.push_back({"rms_norm", [=] { return cpu::rms_norm(x, {w, 1e-5f}, s); }});
  for (mx::Dtype dtype : kFloatTypes) {
    all.push_back({"layer_norm", [=] {
                     return cpu::layer_norm(x, {w, w, 1e-5f}, dtype, s);
                   }});
    all.push_back({"norm_mish", [=] {
                     return cpu::norm_mish(x, {w, w, 1e-5f}, w, dtype, s);
                   }});
    all.push_back({"activate", [=] {
                     auto half = noise_array({2, 130, 192}, 5, dtype);
                     return cpu::activate(half, ops::Activation::gelu, s);
                   }});
    all.push_back({"cast", [=] { return cpu::cast(x, dtype, s); }});
  }
  all.push_back({"leaky_relu", [=] { return cpu::leaky_relu(x, 0.1f, s); }});
  all.push_back({"snake", [=] { return cpu::snake(x, w, s); }});
  all.push_back({"euler_step", [=] {
                   // The state's buffers are taken over.
                   ops::OdeState state{
                       noise_array({1, 1000, 192}, 6),
                       noise_array({2, 1000, 192}, 8)};
                   auto velocity = noise_array({2, 1000, 192}, 7);
                   return cpu::euler_step(state, velocity, {0.7f, 0.1f}, s).x;
                 }});
  all.push_back({"conv_transpose1d", [=] {
                   auto kernel = noise_array({70, 5, 192}, 7);
                   ops::TransposedFilters filters{kernel, noise_array({70}, 8)};
                   return cpu::conv_transpose1d(x, filters, {.stride = 2}, s);
                 }});
  auto spectrum = noise_array({2, 1000, 18}, 9);
  all.push_back(
      {"stft", [=] { return cpu::stft(noise_array({2, 4007}, 1), s); }});
  all.push_back(
      {"polar_spectrum", [=] { return cpu::polar_spectrum(spectrum, s); }});
  all.push_back(
      {"istft", [=] { return cpu::istft(spectrum, {true, true}, s); }});
  all.push_back({"harmonic_source", [=] {
                   ops::HarmonicSource source{
                       array_of({100.0f, 0.0f, 230.0f, 440.0f}, {4}),
                       noise_array({4, 9}, 1),
                       noise_array({4 * 480, 9}, 2),
                       noise_array({9}, 3),
                       noise_array({1}, 4)};
                   return cpu::harmonic_source(source, s);
                 }});
  all.push_back({"normal_noise", [=] {
                   return cpu::normal_noise(
                       {1, DrawStage::flow_frame, 2, 3}, 40, 80, s);
                 }});
  all.push_back({"lstm", [=] {
                   return cpu::lstm(
                       noise_array({31, 6, 40}, 1),
                       {noise_array({4 * 70, 40}, 2),
                        noise_array({4 * 70, 70}, 3),
                        noise_array({4 * 70}, 4)},
                       s);
                 }});
  all.push_back({"swiglu", [=] { return cpu::swiglu(x, s); }});
  all.push_back({"rotary", [=] {
                   auto frequencies = ops::rotary_frequencies(64, {});
                   return cpu::rotary(x, frequencies, 9, s);
                 }});
  return all;
}

} // namespace

TEST_CASE("linear is batch-invariant for up to 16 rows") {
  auto s = cpu_stream();
  for (mx::Dtype dtype : kFloatTypes) {
    for (int depth : {133, 64}) {
      auto x = noise_array({1, cpu::kDotRows, depth}, 1);
      auto w = noise_array({70, depth}, 2, dtype), bias = noise_array({70}, 3);
      auto residual = noise_array({1, cpu::kDotRows, 70}, 4);
      std::vector<std::vector<float>> alone;
      for (int r = 0; r < cpu::kDotRows; ++r) {
        alone.push_back(floats(cpu::linear(
            rows_of(x, r, r + 1),
            w,
            {.bias = bias, .residual = rows_of(residual, r, r + 1)},
            s)));
      }
      for (int count = 2; count <= cpu::kDotRows; ++count) {
        CAPTURE(count);
        auto y = floats(cpu::linear(
            rows_of(x, 0, count),
            w,
            {.bias = bias, .residual = rows_of(residual, 0, count)},
            s));
        for (int r = 0; r < count; ++r) {
          std::vector<float> row(y.begin() + r * 70, y.begin() + (r + 1) * 70);
          CHECK(same_bits(row, alone[r]));
        }
      }
    }
  }
}

TEST_CASE("linear is batch-invariant for more than 16 rows") {
  auto s = cpu_stream();
  for (int depth : {133, 2100}) {
    auto x = noise_array({1, 150, depth}, 1);
    auto w = noise_array({170, depth}, 2);
    auto whole = floats(cpu::linear(x, w, {}, s));
    for (auto [begin, end] :
         {std::pair(0, 17), std::pair(5, 62), std::pair(120, 150)}) {
      CAPTURE(begin);
      auto part = floats(cpu::linear(rows_of(x, begin, end), w, {}, s));
      std::vector<float> same(
          whole.begin() + begin * 170, whole.begin() + end * 170);
      CHECK(same_bits(part, same));
    }
  }
}

TEST_CASE("a row of conv1d is the same wherever its tile begins") {
  auto s = cpu_stream();
  auto x = noise_array({1, 200, 40}, 1), w = noise_array({50, 3, 40}, 2);
  auto whole = floats(cpu::conv1d(x, w, {{.dilation = 2}}, s));
  for (int begin : {1, 13, 100, 190}) {
    CAPTURE(begin);
    auto part =
        floats(cpu::conv1d(rows_of(x, begin, 200), w, {{.dilation = 2}}, s));
    std::vector<float> same(whole.begin() + begin * 50, whole.end());
    CHECK(same_bits(part, same));
  }
}

TEST_CASE("full attention is batch-invariant") {
  auto s = cpu_stream();
  auto q = noise_array({1, 100, 128}, 1), k = noise_array({1, 75, 128}, 2);
  auto whole = floats(cpu::full_attention({q, k, k, 2}, s));
  for (auto [begin, end] :
       {std::pair(0, 1), std::pair(0, 14), std::pair(7, 60)}) {
    CAPTURE(begin);
    auto part =
        floats(cpu::full_attention({rows_of(q, begin, end), k, k, 2}, s));
    std::vector<float> same(
        whole.begin() + begin * 128, whole.begin() + end * 128);
    CHECK(same_bits(part, same));
  }
}

TEST_CASE("cached attention of up to 16 rows is that of its rows alone") {
  auto s = cpu_stream();
  constexpr int heads = 2, head_dim = 64, channels = heads * head_dim;
  for (mx::Dtype dtype : kFloatTypes) {
    auto keys = noise_array({2, heads, 64, head_dim}, 2, dtype);
    auto values = noise_array({2, heads, 64, head_dim}, 3, dtype);
    for (int past : {0, 37}) {
      for (int length : {2, 3, 16}) {
        CAPTURE(past);
        CAPTURE(length);
        auto q = noise_array({2, length, channels}, 1);
        auto whole = cpu::cached_attention({q, past}, {keys, values}, s);
        for (int t = 0; t < length; ++t) {
          auto row = cpu::cached_attention(
              {rows_of(q, t, t + 1), past + t}, {keys, values}, s);
          CHECK(same_bits(row, rows_of(whole, t, t + 1)));
        }
      }
    }
  }
}

TEST_CASE("no result depends on the number of threads") {
  for (const auto& work : works()) {
    CAPTURE(work.name);
    std::vector<float> alone;
    {
      ThreadCount one(1);
      alone = floats(work.run());
    }
    for (int threads : {2, 3}) {
      CAPTURE(threads);
      ThreadCount count(threads);
      CHECK(same_bits(floats(work.run()), alone));
    }
  }
}

TEST_CASE("no result depends on the run") {
  for (const auto& work : works()) {
    CAPTURE(work.name);
    auto first = floats(work.run());
    for (int run = 0; run < 5; ++run) {
      CHECK(same_bits(floats(work.run()), first));
    }
  }
}
