// The loops of products and attention, in every instruction set this processor
// has; the ops run the best one only.

#include <doctest/doctest.h>

#include "nightingale/backends/cpu/half_bits.h"
#include "nightingale/backends/cpu/simd.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;
using cpu::Curve;
using cpu::Simd;
using cpu::Storage;

namespace {

constexpr Storage kStorages[] = {Storage::f32, Storage::f16, Storage::bf16};

template <typename F>
void for_each_table(F body) {
  for (int i = 0; i < cpu::simd_count(); ++i) {
    std::string table = cpu::simd_at(i).name;
    CAPTURE(table);
    body(cpu::simd_at(i));
  }
}

double curved(Curve curve, double x, double alpha) {
  switch (curve) {
    case Curve::none:
      return x;
    case Curve::silu:
      return x / (1.0 + std::exp(-x));
    case Curve::gelu:
      return 0.5 * x * (1.0 + std::erf(x * std::sqrt(0.5)));
    case Curve::gelu_tanh:
      return 0.5 * x *
          (1.0 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
    case Curve::mish:
      return x * std::tanh(std::log1p(std::exp(x)));
    case Curve::elu:
      return x > 0.0 ? x : std::expm1(x);
    case Curve::leaky_relu:
      return x > 0.0 ? x : 0.01 * x;
    case Curve::relu:
      return x > 0.0 ? x : 0.0;
    case Curve::snake:
      return x + std::pow(std::sin(alpha * x), 2) / alpha;
  }
  return x;
}

// Numbers as stored, and what they are worth.
struct Stored {
  Stored(const Simd& simd, const std::vector<float>& numbers, Storage storage)
      : bytes(numbers.size() * storage_bytes(storage)), worth(numbers.size()) {
    int i = static_cast<int>(storage);
    simd.pack[i](numbers.data(), numbers.size(), bytes.data());
    simd.unpack[i](bytes.data(), numbers.size(), worth.data());
  }

  std::vector<char> bytes;
  std::vector<float> worth;
};

} // namespace

TEST_CASE("a gelu that is rounded to bfloat16 is near down to -6") {
  constexpr int kCount = 4096;
  std::vector<float> x(kCount);
  for (int i = 0; i < kCount; ++i) {
    x[i] = 10.0f * i / kCount - 6.0f;
  }
  for_each_table([&](const Simd& simd) {
    std::vector<uint16_t> y(kCount);
    cpu::EpilogueArgs a{};
    a.sums = x.data();
    a.rows = 1;
    a.columns = a.sums_stride = a.stride = kCount;
    a.curve = Curve::gelu;
    a.y = y.data();
    simd.product.epilogue[static_cast<int>(Storage::bf16)](a);
    double error = 0;
    for (int i = 0; i < kCount; ++i) {
      double expected = x[i] == 0.0f
          ? 0.0
          : 0.5 * x[i] * std::erfc(-double(x[i]) * std::sqrt(0.5));
      double difference = std::fabs(widen(bf16{y[i]}) - expected);
      error = std::max(error, difference / std::fabs(expected + 1e-30));
    }
    CHECK(error < 0x1p-8 + 3e-4);
  });
}

TEST_CASE("a product tile adds the products of all taps") {
  for_each_table([](const Simd& simd) {
    int rows = simd.product.rows, columns = simd.product.columns;
    for (auto [taps, depth] :
         {std::pair(1, 1), std::pair(1, 37), std::pair(3, 20)}) {
      for (int gap : {0, 5}) { // between the inputs of two taps
        CAPTURE(taps);
        CAPTURE(gap);
        int64_t tap_step = depth + gap, row_step = tap_step * taps + 3;
        auto x = noise(rows * row_step, 1);
        auto w = noise(taps * depth * columns, 2);
        Values expected(rows * columns);
        for (int r = 0; r < rows; ++r) {
          for (int c = 0; c < columns; ++c) {
            for (int i = 0; i < taps * depth; ++i) {
              int64_t at = r * row_step + i / depth * tap_step + i % depth;
              expected[r * columns + c] += double(x[at]) * w[i * columns + c];
            }
          }
        }
        std::vector<float> y(rows * columns);
        cpu::TileArgs a{
            x.data(),
            row_step,
            tap_step,
            taps,
            depth,
            w.data(),
            columns,
            y.data(),
            columns};
        simd.product.tile(a);
        CHECK(relative_error(Values(y.begin(), y.end()), expected) < 1e-6);
        std::vector<float> halves(rows * columns);
        a.y = halves.data();
        simd.product.half_tile(a);
        for (int i = 0; i < rows * columns; ++i) {
          CHECK(halves[i] == (i % columns < columns / 2 ? y[i] : 0.0f));
        }
      }
    }
  });
}

TEST_CASE("a packed panel is the transposed weights, and zeros") {
  for_each_table([](const Simd& simd) {
    int width = simd.product.columns;
    for (Storage storage : kStorages) {
      for (int columns : {1, width / 2, width}) {
        for (int depth : {1, 16, 37, 100}) {
          CAPTURE(columns);
          CAPTURE(depth);
          Stored w(simd, noise(columns * depth, 1), storage);
          std::vector<float> panel(depth * width, -1.0f), expected;
          simd.product.pack_panel[static_cast<int>(storage)](
              w.bytes.data(), depth, columns, depth, panel.data());
          for (int k = 0; k < depth; ++k) {
            for (int c = 0; c < width; ++c) {
              expected.push_back(c < columns ? w.worth[c * depth + k] : 0.0f);
            }
          }
          CHECK(panel == expected);
        }
      }
    }
  });
}

TEST_CASE("the epilogue is applied in every type and by every curve") {
  constexpr int rows = 3, stride = 50;
  for_each_table([](const Simd& simd) {
    for (int columns : {1, 16, 33, 47}) {
      auto sums = noise(rows * stride, 1), bias = noise(columns, 2);
      auto residual = noise(rows * stride, 3);
      std::vector<float> alpha(columns), inverse(columns);
      for (int c = 0; c < columns; ++c) {
        alpha[c] = 0.5f + c;
        inverse[c] = 1.0f / alpha[c];
      }
      for (Storage storage : kStorages) {
        for (int curve = 0; curve <= int(Curve::snake); ++curve) {
          for (bool added : {false, true}) {
            CAPTURE(columns);
            CAPTURE(curve);
            Stored more(simd, residual, storage);
            Stored y(simd, noise(rows * stride, 4), storage);
            cpu::EpilogueArgs a{
                sums.data(),
                stride,
                rows,
                columns,
                added ? bias.data() : nullptr,
                Curve(curve),
                alpha.data(),
                inverse.data(),
                added ? more.bytes.data() : nullptr,
                y.bytes.data(),
                stride};
            Values expected(y.worth.begin(), y.worth.end());
            for (int r = 0; r < rows; ++r) {
              for (int c = 0; c < columns; ++c) {
                int i = r * stride + c;
                double x = curved(
                    Curve(curve), sums[i] + (added ? bias[c] : 0.0f), alpha[c]);
                expected[i] = x + (added ? more.worth[i] : 0.0f);
              }
            }
            simd.product.epilogue[static_cast<int>(storage)](a);
            std::vector<float> found(rows * stride);
            simd.unpack[static_cast<int>(storage)](
                y.bytes.data(), found.size(), found.data());
            double rounding = storage == Storage::f32 ? 1e-6
                : storage == Storage::f16             ? 5e-4
                                                      : 4e-3;
            CHECK(
                relative_error(Values(found.begin(), found.end()), expected) <
                rounding);
          }
        }
      }
    }
  });
}

TEST_CASE("snake is exact to 1e-6 for arguments up to 1e4") {
  for_each_table([](const Simd& simd) {
    constexpr int count = 4096;
    std::vector<float> x(count), alpha(count, 1.0f), y(count);
    for (int i = 0; i < count; ++i) {
      x[i] = (i - count / 2) * 4.8f;
    }
    cpu::EpilogueArgs a{
        x.data(),
        count,
        1,
        count,
        nullptr,
        Curve::snake,
        alpha.data(),
        alpha.data(),
        nullptr,
        y.data(),
        count};
    simd.product.epilogue[0](a);
    for (int i = 0; i < count; ++i) {
      double sine = std::sin(double(x[i])), expected = x[i] + sine * sine;
      // The sum with x rounds to x's own precision.
      CHECK(std::fabs(y[i] - expected) < 1e-6 + 6e-8 * std::fabs(x[i]));
    }
  });
}

TEST_CASE("depthwise taps are added channel by channel") {
  for_each_table([](const Simd& simd) {
    for (int channels : {1, 16, 35}) {
      auto x = noise(9 * channels, 1), w = noise(5 * channels, 2);
      for (auto [first, last] : {std::pair(0, 5), std::pair(2, 4)}) {
        std::vector<float> y(channels);
        cpu::DepthwiseArgs a{
            x.data(),
            2 * channels,
            first,
            last,
            w.data(),
            channels,
            channels,
            y.data()};
        simd.product.depthwise(a);
        Values expected(channels);
        for (int c = 0; c < channels; ++c) {
          for (int tap = first; tap < last; ++tap) {
            expected[c] +=
                double(x[2 * tap * channels + c]) * w[tap * channels + c];
          }
        }
        CHECK(relative_error(Values(y.begin(), y.end()), expected) < 1e-6);
      }
    }
  });
}

TEST_CASE("a row of scores becomes exponentials and their sum") {
  for_each_table([](const Simd& simd) {
    for (int count : {1, 4, 15, 16, 64, 100, 701}) {
      for (bool added : {false, true}) {
        CAPTURE(count);
        CAPTURE(added);
        auto x = noise(count + 32, 1), more = noise(count + 32, 2);
        Values expected(count);
        double top = -1e30, sum = 0.0;
        for (int i = 0; i < count; ++i) {
          expected[i] = x[i] + (added ? more[i] : 0.0f);
          top = std::max(top, expected[i]);
        }
        for (double& value : expected) {
          value = std::exp(0.7 * (value - top));
          sum += value;
        }
        float found = simd.attention.exp_row(
            x.data(), added ? more.data() : nullptr, count, 0.7f);
        x.resize(count);
        CHECK(relative_error(Values(x.begin(), x.end()), expected) < 1e-6);
        CHECK(std::fabs(found - sum) < 1e-6 * sum);
      }
    }
  });
}
