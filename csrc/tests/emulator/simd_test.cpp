#include "emulator/tiny_kernel.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

std::vector<float> result_of(const std::string& expression) {
  return floats(run(
      {.body = "uint t = thread_index_in_threadgroup;\n"
               "uint lane = thread_index_in_simdgroup;\n"
               "uint simd = simdgroup_index_in_threadgroup;\n"
               "int i = 10 - int(t);\nfloat v = x[t];\n"
               "y[t] = float(" +
           expression + ");"}));
}

} // namespace

TEST_CASE("emulator: threads know their lane and SIMD group") {
  CHECK(result_of("simd * 100 + lane")[37] == 105);
}

TEST_CASE("emulator: reductions over a SIMD group") {
  auto sums = result_of("simd_sum(v)");
  CHECK(sums[0] == 496);
  CHECK(sums[31] == 496);
  CHECK(sums[32] == 496 + 32 * 32);
  CHECK(result_of("simd_max(v)")[5] == 31);
  CHECK(result_of("simd_min(v)")[40] == 32);
  CHECK(result_of("simd_sum(i)")[40] == 320 - 496 - 32 * 32);
  CHECK(result_of("simd_max(i)")[40] == -22);
  CHECK(result_of("simd_min(i)")[3] == -21);
  CHECK(result_of("simd_max(0u - t)")[0] == 4294967295.0f);
  CHECK(result_of("simd_min(t + 3u)")[40] == 35);
}

TEST_CASE("emulator: simd_sum adds lanes 16 apart first") {
  auto v = mx::multiply(
      mx::exp(mx::random::normal({64}, mx::random::key(3), mx::Device::cpu)),
      mx::array(1e3f),
      mx::Device::cpu);
  auto y = run(
      {.body = "uint t = thread_index_in_threadgroup;\ny[t] = simd_sum(x[t]);",
       .x = v});
  auto sums = floats(v);
  for (int apart = 16; apart > 0; apart /= 2) {
    for (int i = 0; i < apart; ++i) {
      sums[i] += sums[i + apart];
    }
  }
  CHECK(floats(y)[7] == sums[0]);
}

TEST_CASE("emulator: lanes read each other's values") {
  CHECK(result_of("simd_shuffle(v, (lane + 5) % 32)")[30] == 3);
  CHECK(result_of("simd_shuffle(v, (lane + 5) % 32)")[62] == 35);
  CHECK(result_of("simd_shuffle_xor(v, 16)")[33] == 49);
  CHECK(result_of("simd_shuffle_xor(i, 1)")[1] == 10);
  CHECK(result_of("simd_shuffle_down(v, 3)")[8] == 11);
  CHECK(result_of("simd_shuffle_down(v, 3)")[30] == 30);
  CHECK(result_of("simd_broadcast(t, 7)")[63] == 39);
}

TEST_CASE("emulator: all lanes must come to the same SIMD operation") {
  auto body = [](const std::string& statement) {
    return "uint t = thread_index_in_threadgroup;\nfloat v = x[t];\n" +
        statement + "\ny[t] = v;";
  };
  check_fault(
      {.body = body("if (t % 32 < 16) v = simd_sum(v);")},
      "divergent SIMD operation: waits at simd_sum in line");
  check_fault(
      {.body = body("if (t % 2 == 0) v = simd_sum(v); else v = simd_max(v);")},
      "but thread 1 is at simd_max");
  check_fault(
      {.body = body("if (t == 63) { y[t] = 0.0f; return; }\nv = simd_sum(v);")},
      "but thread 63 has ended");
  check_fault(
      {.body = body("if (t < 16) v = simd_sum(v);\n"
                    "threadgroup_barrier(mem_flags::mem_threadgroup);")},
      "divergent barrier");
  // Whole SIMD groups may go ways of their own.
  auto y = run({.body = body("if (t < 32) v = simd_sum(v);")});
  CHECK(floats(y)[3] == 496);
  CHECK(floats(y)[33] == 33);
}

TEST_CASE("emulator: lanes of a shuffle agree and are lanes") {
  auto body = [](const std::string& value) {
    return "uint t = thread_index_in_threadgroup;\ny[t] = " + value + ";";
  };
  check_fault(
      {.body = body("simd_shuffle_xor(x[t], t % 2)")},
      "simd_shuffle_xor is given 1 where lane 0 gives 0");
  check_fault(
      {.body = body("simd_broadcast(x[t], t / 2 % 4)")},
      "simd_broadcast is given 1 where lane 0 gives 0");
  check_fault(
      {.body = body("simd_shuffle(x[t], t)")},
      "simd_shuffle is given 32, which is no lane");
}

TEST_CASE("emulator: more than a GPU has is refused") {
  TinyKernel kernel{
      .body =
          "threadgroup float a[THREADS * 8];\n"
          "uint t = thread_index_in_threadgroup;\na[t] = x[t % 64];\n"
          "y[t] = a[t];",
      .shape = {256},
      .threads = 256};
  CHECK(floats(run(kernel))[70] == 6);
  {
    KernelLimits limits({.threads = 128});
    CHECK_THROWS_WITH_AS(
        run(kernel),
        "tiny: a group of 256 threads is more than 128",
        std::invalid_argument);
  }
  {
    KernelLimits limits({.threadgroup_bytes = 8000});
    CHECK_THROWS_WITH_AS(
        run(kernel),
        "tiny: 8192 bytes of threadgroup memory are more than 8000",
        std::invalid_argument);
  }
  CHECK(floats(run(kernel))[70] == 6);
  kernel.threads = 2048;
  kernel.shape = {2048};
  CHECK_THROWS_AS(run(kernel), std::invalid_argument);
  kernel.threads = kernel.shape[0] = 1024; // 32 kB
  CHECK(floats(run(kernel))[1000] == 40);
}
