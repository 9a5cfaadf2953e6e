#include "nightingale/backends/cpu/simd.h"

#include <doctest/doctest.h>

#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;
using cpu::Simd;
using cpu::Storage;

namespace {

constexpr Storage kStorages[] = {Storage::f32, Storage::f16, Storage::bf16};

const Simd& plain() {
  return cpu::simd_at(cpu::simd_count() - 1);
}

template <typename F>
void for_each_table(F body) {
  for (int i = 0; i < cpu::simd_count(); ++i) {
    std::string table = cpu::simd_at(i).name;
    CAPTURE(table);
    body(cpu::simd_at(i));
  }
}

// 1 to 70 and large ones, around the multiples of every vector width.
std::vector<int> lengths() {
  std::vector<int> all;
  for (int i = 1; i <= 70; ++i) {
    all.push_back(i);
  }
  all.insert(all.end(), {127, 128, 1000, 1024, 4096, 5003});
  return all;
}

// Elements as stored, one element off any alignment.
struct Packed {
  Packed(const std::vector<float>& numbers, Storage storage)
      : bytes((numbers.size() + 1) * storage_bytes(storage)),
        offset(storage_bytes(storage)) {
    int i = static_cast<int>(storage);
    plain().pack[i](numbers.data(), numbers.size(), bytes.data() + offset);
    rounded.resize(numbers.size());
    plain().unpack[i](data(), numbers.size(), rounded.data());
  }

  const void* data() const {
    return bytes.data() + offset;
  }

  std::vector<char> bytes;
  int offset;
  std::vector<float> rounded; // the elements' values
};

using CurveLoop =
    void (*cpu::ActivationLoops::*)(const float*, int64_t, float*);

std::vector<CurveLoop> curves() {
  using cpu::ActivationLoops;
  return {
      &ActivationLoops::silu,
      &ActivationLoops::gelu,
      &ActivationLoops::mish,
      &ActivationLoops::elu,
      &ActivationLoops::relu};
}

// Output with guards behind it.
struct Guarded {
  explicit Guarded(size_t count) : numbers(count + kGuards, kGuard) {}

  float* data() {
    return numbers.data();
  }
  Values values() const {
    return {numbers.begin(), numbers.end() - kGuards};
  }
  bool intact() const {
    return std::all_of(numbers.end() - kGuards, numbers.end(), [](float x) {
      return x == kGuard;
    });
  }

  static constexpr int kGuards = 16;
  static constexpr float kGuard = 12345.0f;
  std::vector<float> numbers;
};

} // namespace

TEST_CASE("the tables end with the plain one and begin with the one in use") {
  CHECK(std::string(plain().name) == "plain");
  CHECK(&cpu::simd() == &cpu::simd_at(0));
}

TEST_CASE("dots of every table, storage and shape") {
  for_each_table([](const Simd& simd) {
    for (Storage storage : kStorages) {
      for (int depth : lengths()) {
        for (auto [rows, columns] :
             {std::pair(1, 1),
              std::pair(1, 9),
              std::pair(2, 4),
              std::pair(3, 5),
              std::pair(7, 6)}) {
          int x_stride = depth + 3, w_stride = depth + 1, y_stride = columns;
          auto x = noise(rows * x_stride, 1);
          Packed w(noise(columns * w_stride, 2), storage);
          auto bias = noise(columns, 3), residual = noise(rows * columns, 4);
          Guarded y(rows * y_stride);
          cpu::DotArgs args;
          args.x = x.data();
          args.x_stride = x_stride;
          args.rows = rows;
          args.w = w.data();
          args.w_stride = w_stride;
          args.columns = columns;
          args.depth = depth;
          args.bias = bias.data();
          args.residual = residual.data();
          args.residual_stride = columns;
          args.y = y.data();
          args.y_stride = y_stride;
          simd.dots[static_cast<int>(storage)](args);

          double worst = 0.0;
          for (int r = 0; r < rows; ++r) {
            for (int c = 0; c < columns; ++c) {
              double sum = bias[c] + residual[r * columns + c];
              double magnitude = std::fabs(sum);
              for (int k = 0; k < depth; ++k) {
                double term = x[r * x_stride + k];
                term *= w.rounded[c * w_stride + k];
                sum += term;
                magnitude += std::fabs(term);
              }
              double error = std::fabs(y.numbers[r * y_stride + c] - sum);
              worst = std::max(worst, error / magnitude);
            }
          }
          // Relative to the sum of the terms' magnitudes.
          CHECK(worst < 3e-7);
          CHECK(y.intact());
        }
      }
    }
  });
}

TEST_CASE("weighted sums of every table, storage and shape") {
  for_each_table([](const Simd& simd) {
    for (Storage storage : kStorages) {
      for (int depth : lengths()) {
        int count = depth > 300 ? 20 : depth * 7 % 70 + 1;
        int stride = depth + 2;
        auto p = noise(count, 1);
        Packed v(noise(count * stride, 2), storage);
        Guarded out(depth);
        simd.weighted_sum[static_cast<int>(storage)](
            p.data(), count, v.data(), stride, depth, out.data());
        Values expected(depth);
        for (int t = 0; t < count; ++t) {
          for (int d = 0; d < depth; ++d) {
            expected[d] += double(p[t]) * v.rounded[t * stride + d];
          }
        }
        CHECK(relative_error(out.values(), expected) < 3e-6);
        CHECK(out.intact());
      }
    }
  });
}

TEST_CASE("pack and unpack of every table are the plain ones, bit for bit") {
  for_each_table([](const Simd& simd) {
    for (Storage storage : kStorages) {
      int i = static_cast<int>(storage);
      for (int count : lengths()) {
        auto numbers = noise(count, count);
        Packed expected(numbers, storage);
        Packed actual(numbers, storage);
        simd.pack[i](
            numbers.data(), count, actual.bytes.data() + actual.offset);
        CHECK(actual.bytes == expected.bytes);
        Guarded unpacked(count);
        simd.unpack[i](expected.data(), count, unpacked.data());
        CHECK(
            unpacked.values() ==
            Values(expected.rounded.begin(), expected.rounded.end()));
        CHECK(unpacked.intact());
      }
    }
  });
}

TEST_CASE("sum of every table and length") {
  for_each_table([](const Simd& simd) {
    for (int count : lengths()) {
      auto x = noise(count, count);
      double expected = 0.0, magnitude = 0.0;
      for (float v : x) {
        expected += v;
        magnitude += std::fabs(v);
      }
      double error = std::fabs(simd.sum(x.data(), count) - expected);
      CHECK(error / magnitude < 3e-7);
    }
  });
}

TEST_CASE("softmax of every table, within a few ulp of exact") {
  for_each_table([](const Simd& simd) {
    for (int count : lengths()) {
      for (float scale : {1.0f, 0.125f, 4.0f}) {
        auto x = noise(count, count);
        Guarded y(count);
        std::ranges::copy(x, y.data());
        simd.softmax(y.data(), count, scale);
        double top = *std::ranges::max_element(x), sum = 0.0;
        for (float v : x) {
          sum += std::exp((v - top) * scale);
        }
        double worst = 0.0;
        for (int i = 0; i < count; ++i) {
          double expected = std::exp((x[i] - top) * scale) / sum;
          worst = std::max(worst, std::fabs(y.numbers[i] / expected - 1.0));
        }
        // The argument, up to 30, is itself rounded to 2^-24 of its size; the
        // plain table adds up the terms one by one.
        CHECK(worst < 2.5e-6 + 1e-9 * count);
        CHECK(y.intact());
      }
    }
  });
}

TEST_CASE("softmax of scores far apart neither overflows nor is NaN") {
  for_each_table([](const Simd& simd) {
    std::vector<float> x(40, -1e30f);
    x[7] = 1e30f;
    simd.softmax(x.data(), 40, 1.0f);
    CHECK(x[7] == 1.0f);
    CHECK(*std::ranges::max_element(x.begin() + 8, x.end()) < 1e-37f);
  });
}

TEST_CASE("a NaN among the scores is not hidden by softmax") {
  for_each_table([](const Simd& simd) {
    for (int count : {3, 40}) {
      std::vector<float> x(count, 1.0f);
      x[2] = std::nanf("");
      simd.softmax(x.data(), count, 1.0f);
      CHECK(std::ranges::any_of(x, [](float v) { return std::isnan(v); }));
    }
  });
}

TEST_CASE("norms and activations of every table agree with the plain one") {
  for_each_table([](const Simd& simd) {
    for (int count : lengths()) {
      auto x = noise(count, 1), w = noise(count, 2), b = noise(count, 3);
      auto compare = [&](auto run) {
        Guarded expected(count), actual(count);
        run(plain(), expected.data());
        run(simd, actual.data());
        CHECK(relative_error(actual.values(), expected.values()) < 1e-6);
        CHECK(actual.intact());
      };
      compare([&](const Simd& table, float* y) {
        table.rms_norm(x.data(), w.data(), count, 1e-5f, y);
      });
      compare([&](const Simd& table, float* y) {
        table.layer_norm(x.data(), w.data(), b.data(), count, 1e-5f, y);
      });
      compare([&](const Simd& table, float* y) {
        table.norm_mish(
            x.data(), w.data(), b.data(), b.data(), count, 1e-5f, y);
      });
      for (auto loop : curves()) {
        compare([&](const Simd& table, float* y) {
          (table.activation.*loop)(x.data(), count, y);
        });
      }
      compare([&](const Simd& table, float* y) {
        table.activation.leaky_relu(x.data(), count, 0.1f, y);
      });
      compare([&](const Simd& table, float* y) {
        table.activation.snake(x.data(), w.data(), b.data(), count, y);
      });
      compare([&](const Simd& table, float* y) {
        table.silu_mul(x.data(), w.data(), count, y);
      });
      auto gates = noise(4 * count, 6);
      compare([&](const Simd& table, float* y) {
        std::vector<float> cell = b;
        table.activation.lstm_cell(gates.data(), count, count, cell.data(), y);
      });
    }
  });
}

TEST_CASE("silu is within 4 ulp of exact from -80 to 80") {
  // For x far below zero silu is x * exp(x): the error is exp's own.
  std::vector<float> x;
  for (float v = -80.0f; v <= 80.0f; v += 0.0037f) {
    x.push_back(v);
  }
  std::vector<float> y(x.size());
  for_each_table([&](const Simd& simd) {
    simd.activation.silu(x.data(), x.size(), y.data());
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      double exact = x[i] / (1.0 + std::exp(-double(x[i])));
      float rounded = static_cast<float>(exact);
      double ulp =
          std::nextafter(std::fabs(rounded), INFINITY) - std::fabs(rounded);
      worst = std::max(worst, std::fabs(y[i] - exact) / ulp);
    }
    CHECK(worst < 4.0);
  });
}

TEST_CASE("squared sines are exact to 4e-7 up to arguments of 10,000") {
  // By Snake of so large a gain that the rounding of the x it adds to does not
  // count.
  std::vector<float> x, ones;
  for (float v = -1e4f; v <= 1e4f; v += 0.137f) {
    x.push_back(v);
  }
  ones.assign(x.size(), 1.0f);
  std::vector<float> y(x.size());
  for_each_table([&](const Simd& simd) {
    std::vector<float> gain(x.size(), 0x1p20f);
    simd.activation.snake(
        x.data(), ones.data(), gain.data(), x.size(), y.data());
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      double sine = std::sin(double(x[i]));
      worst = std::max(
          worst, std::fabs((y[i] - double(x[i])) * 0x1p-20 - sine * sine));
    }
    CHECK(worst < 4e-7);
  });
}

TEST_CASE("random words of every table are those of random_word") {
  DrawKey key{0x12345678, 0x9abcdef0};
  for_each_table([&](const Simd& simd) {
    for (uint32_t count : {1, 2, 3, 15, 16, 17, 31, 32, 33, 100, 4320, 4321}) {
      CAPTURE(count);
      std::vector<uint32_t> words(count + 1, 77), expected(count + 1, 77);
      simd.signal.random_words(key, count, words.data());
      for (uint32_t i = 0; i < count; ++i) {
        expected[i] = random_word(key, i, count);
      }
      CHECK(words == expected);
    }
  });
}

TEST_CASE("normals of every table invert the normal distribution") {
  // Both ends, the middle, and words spread between them.
  std::vector<uint32_t> words{0, 0xffffffff, 0x80000000, 0x7fffffff};
  for (uint32_t i = 0; i < 200'001; ++i) {
    words.push_back(i * 21474u);
  }
  int count = words.size();
  for_each_table([&](const Simd& simd) {
    Guarded y(count);
    simd.signal.normals(words.data(), count, y.data());
    CHECK(y.intact());
    double worst = 0.0;
    for (int i = 0; i < count; ++i) {
      double middle = ((words[i] >> 9) + 0.5) * 0x1p-23;
      double z = y.numbers[i], density = std::exp(-z * z / 2) / 2.5066282746;
      double lower = 0.5 * std::erfc(-z * std::sqrt(0.5));
      double upper = 0.5 * std::erfc(z * std::sqrt(0.5));
      double wrong = z < 0 ? lower - middle : (1 - middle) - upper;
      worst = std::max(
          worst, std::fabs(wrong / density) / std::max(1.0, std::fabs(z)));
    }
    CHECK(worst < 6e-7);
  });
}
