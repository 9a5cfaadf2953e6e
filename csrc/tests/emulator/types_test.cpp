#include <bit>
#include <cmath>

#include "emulator/tiny_kernel.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::string kThread = "uint t = thread_index_in_threadgroup;\n";

// Every kind of float: ties, subnormals, what overflows, infinities and NaN.
mx::array telling_floats() {
  std::vector<float> v{
      0.0f,
      -0.0f,
      1.0f,
      65504.0f,
      65519.9f,
      65520.0f,
      1e-8f,
      3e-8f,
      6e-8f,
      2.98023224e-8f,
      6.1e-5f,
      6.097e-5f,
      INFINITY,
      -INFINITY,
      NAN,
      1e38f,
      3.4e38f,
      -1e-40f};
  uint32_t bits = 1;
  while (v.size() < 1024) {
    bits = bits * 1664525u + 1013904223u;
    // Half of them within the range of half precision, some of those ties.
    float any = std::bit_cast<float>(bits);
    uint32_t near = (bits & 0x8fffffffu) | (96 + bits % 48) << 23;
    v.push_back(v.size() % 2 ? any : std::bit_cast<float>(near & ~0xfffu));
  }
  return mx::array(v.data(), {1024});
}

template <typename T>
void check_rounding(mx::Dtype dtype) {
  auto x = telling_floats();
  auto y = run(
      {.body = kThread + "y[t] = T(x[t]);",
       .x = x,
       .shape = {1024},
       .dtype = dtype,
       .threads = 1024,
       .constants = {{"T", dtype}}});
  for (int i = 0; i < 1024; ++i) {
    float value = x.data<float>()[i];
    CAPTURE(value);
    float rounded = float(y.data<T>()[i]);
    float expected = float(T(value));
    CHECK(std::isnan(rounded) == std::isnan(expected));
    if (!std::isnan(expected)) {
      CHECK(rounded == expected);
    }
  }
  auto back = run(
      {.body = kThread + "y[t] = float(x[t]);",
       .x = y,
       .shape = {1024},
       .threads = 1024});
  for (int i = 0; i < 1024; ++i) {
    float expected = float(y.data<T>()[i]);
    CHECK(
        (std::isnan(expected) ? std::isnan(floats(back)[i])
                              : floats(back)[i] == expected));
  }
}

std::vector<float> floats_of(const std::string& expression, mx::array x) {
  auto y = run(
      {.body = kThread + "float v = x[t];\ny[t] = " + expression + ";",
       .x = x,
       .shape = x.shape(),
       .threads = x.shape(0)});
  return floats(y);
}

} // namespace

TEST_CASE("emulator: float16 rounds to nearest, ties to even") {
  check_rounding<mx::float16_t>(mx::float16);
}

TEST_CASE("emulator: bfloat16 rounds to nearest, ties to even") {
  check_rounding<mx::bfloat16_t>(mx::bfloat16);
}

TEST_CASE("emulator: numbers are rounded only where the text says so") {
  TinyKernel kernel{
      .body = kThread + "y[t] = x[t] + 0.5f;", .dtype = mx::bfloat16};
  check_fault(kernel, "does not compile");
  kernel.body = kThread + "y[t] = t;";
  check_fault(kernel, "does not compile");
  kernel.body = kThread + "for (int i = 0; i < N; ++i) y[t] = x[t];\n" +
      "y[t] = bfloat16_t(0.0f);";
  kernel.constants = {{"N", 0}}; // what never runs is compiled too
  check_fault(kernel, "does not compile");
  kernel.body = kThread + "y[t] = bfloat16_t(x[t] + 0.5f);";
  CHECK(float(run(kernel).data<mx::bfloat16_t>()[5]) == 5.5f);
}

TEST_CASE("emulator: half-precision arithmetic rounds after every operation") {
  auto x = mx::linspace(0.1, 40.0, 64, mx::float32, mx::Device::cpu);
  auto chain = [&](mx::Dtype dtype) {
    return run(
        {.body = kThread +
             "T a = T(x[t]), b = T(x[63 - t]);\ny[t] = a * b + a / b - b;",
         .x = x,
         .dtype = dtype,
         .constants = {{"T", dtype}}});
  };
  auto check = [&]<typename T>(T, const mx::array& y) {
    for (int i = 0; i < 64; ++i) {
      float a = float(T(floats(x)[i])), b = float(T(floats(x)[63 - i]));
      float product = float(T(a * b)), quotient = float(T(a / b));
      float sum = float(T(product + quotient));
      CHECK(float(y.data<T>()[i]) == float(T(sum - b)));
    }
  };
  mx::eval(x);
  check(mx::float16_t(), chain(mx::float16));
  check(mx::bfloat16_t(), chain(mx::bfloat16));
}

TEST_CASE("emulator: products and sums are not contracted") {
  auto x = mx::array({1.0f + 0x1p-12f, 1.0f + 0x1p-12f}, {2});
  x = mx::contiguous(mx::broadcast_to(mx::slice(x, {0}, {1}), {32}));
  mx::eval(x);
  CHECK(floats_of("v * v - (1.0f + v * 2.0f - 2.0f)", x)[0] == 0.0f);
  CHECK(floats_of("fma(v, v, -(v * v))", x)[0] == 0x1p-24f);
}

TEST_CASE("emulator: functions of float") {
  auto x = mx::linspace(0.05, 3.0, 64, mx::float32, mx::Device::cpu);
  mx::eval(x);
  float v = floats(x)[20];
  CHECK(floats_of("precise::exp(v)", x)[20] == std::exp(v));
  CHECK(floats_of("exp(v)", x)[20] == std::exp(v));
  CHECK(floats_of("fast::exp2(v)", x)[20] == std::exp2(v));
  CHECK(floats_of("precise::log(v)", x)[20] == std::log(v));
  CHECK(floats_of("precise::sin(v)", x)[20] == std::sin(v));
  CHECK(floats_of("precise::cos(v)", x)[20] == std::cos(v));
  CHECK(floats_of("precise::tanh(v)", x)[20] == std::tanh(v));
  CHECK(floats_of("precise::sqrt(v)", x)[20] == std::sqrt(v));
  CHECK(floats_of("precise::rsqrt(v)", x)[20] == 1.0f / std::sqrt(v));
  CHECK(floats_of("floor(-v * 3.0f)", x)[20] == std::floor(-v * 3.0f));
  CHECK(floats_of("abs(-v)", x)[20] == v);
  CHECK(floats_of("clamp(v, 1.0f, 2.0f)", x)[0] == 1.0f);
  CHECK(floats_of("clamp(v, 1.0f, 2.0f)", x)[63] == 2.0f);
  CHECK(floats_of("select(1.0f, 2.0f, v > 1.0f)", x)[63] == 2.0f);
  CHECK(floats_of("max(v, v * INFINITY - INFINITY)", x)[20] == v);
  CHECK(floats_of("min(v * INFINITY - INFINITY, v)", x)[20] == v);
  CHECK(floats_of("isnan(INFINITY - INFINITY * v) ? 1.0f : 0.0f", x)[0] == 1);
  CHECK(floats_of("isinf(-INFINITY * v) ? 1.0f : 0.0f", x)[0] == 1);
}

TEST_CASE("emulator: integers, vectors and bits") {
  auto y = run(
      {.body = kThread +
           "uint4 q = uint4(t, t + 1, t + 2, t + 3);\n"
           "float4 f = float4(1.0f) * 2.0f + float4(0.0f, 1.0f, 2.0f, 3.0f);\n"
           "int4 i = int4(-1, 2, -3, 4);\n"
           "float2 two = float2(0.5f, 0.25f);\n"
           "uint2 pair = uint2(0x3c004000u, 1u);\n"
           "half2 h = as_type<half2>(pair.x);\n"
           "uchar byte = uchar(t * 7);\nshort s = short(i.z);\n"
           "y[t] = float(q.x + q.w) + f.z + float(abs(i.z) + i.w) + two.y +\n"
           "    float(h.x) + float(h.y) + float(byte) + float(s) +\n"
           "    float(popcount(0xf0f0u)) + as_type<float>(0x40000000u);"});
  for (int t = 0; t < 64; ++t) {
    CHECK(
        floats(y)[t] ==
        (2 * t + 3) + 4 + 7 + 0.25f + 2 + 1 + (t * 7 & 255) - 3 + 8 + 2);
  }
}

TEST_CASE("emulator: kernels are compiled for their constants") {
  TinyKernel kernel{
      .body = kThread +
          "if constexpr (TWICE) y[t] = Y(x[t] * N * 2.0f);\n"
          "else y[t] = Y(x[t] * N);",
      .dtype = mx::float16,
      .constants = {{"N", 3}, {"TWICE", false}, {"Y", mx::float16}}};
  CHECK(float(run(kernel).data<mx::float16_t>()[5]) == 15);
  kernel.constants[1].second = true;
  CHECK(float(run(kernel).data<mx::float16_t>()[5]) == 30);
}

TEST_CASE("emulator: inputs of fewer than 8 elements are constant") {
  TinyKernel kernel{
      .body = kThread + "y[t] = first(x);",
      .header =
          "METAL_FUNC float first(const device float* p) { return p[0]; }"};
  kernel.x = mx::array(std::vector<float>(8, 2.5f).data(), {8});
  CHECK(floats(run(kernel))[3] == 2.5f);
  kernel.x = mx::array(std::vector<float>(7, 2.5f).data(), {7});
  check_fault(kernel, "does not compile");
  kernel.body = kThread + "y[t] = x[0];";
  CHECK(floats(run(kernel))[3] == 2.5f);
}
