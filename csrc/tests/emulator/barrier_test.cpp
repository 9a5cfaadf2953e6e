#include "emulator/tiny_kernel.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::string kShared =
    "threadgroup float a[64];\nuint t = thread_index_in_threadgroup;\n";
const std::string kBarrier =
    "threadgroup_barrier(mem_flags::mem_threadgroup);\n";

} // namespace

TEST_CASE("emulator: threads see what others wrote before a barrier") {
  auto y = run(
      {.body = kShared + "a[t] = x[t];\n" + kBarrier + "y[t] = a[63 - t];"});
  CHECK(floats(y)[3] == 60);
}

TEST_CASE("emulator: without the barrier it is a race") {
  check_fault(
      {.body = kShared + "a[t] = x[t];\ny[t] = a[t / 2];"},
      "race: reads byte 0 of threadgroup memory, which thread 0 wrote with no "
      "barrier between; group (0, 0, 0), thread 1, at `y[t] = a[t / 2];`");
  check_fault(
      {.body = kShared + "a[t / 2] = x[t];\n" + kBarrier + "y[t] = a[t / 2];"},
      "race: writes byte 0 of threadgroup memory, which thread 0 wrote");
  // The second round overwrites what others may still read.
  std::string round = "a[t] = x[t];\n" + kBarrier + "sum += a[63 - t];\n";
  check_fault(
      {.body = kShared + "float sum = 0.0f;\n" + round + round + "y[t] = sum;"},
      "race: reads byte 124 of threadgroup memory, which thread 31 wrote");
  auto y = run(
      {.body = kShared + "float sum = 0.0f;\n" + round + kBarrier + round +
           "y[t] = sum;"});
  CHECK(floats(y)[3] == 120);
}

TEST_CASE("emulator: a write after reads by many is a race with any of them") {
  // The last to read are the writer and its neighbours, behind a barrier of
  // their SIMD group; thread 0 has read before them.
  check_fault(
      {.body = kShared + "a[t] = x[t];\n" + kBarrier +
           "float v = a[63];\n"
           "simdgroup_barrier(mem_flags::mem_threadgroup);\n"
           "if (t == 63) a[63] = v + 1.0f;\ny[t] = v;"},
      "race: writes byte 252 of threadgroup memory, which thread 31 read");
}

TEST_CASE("emulator: a barrier of the SIMD group orders its threads only") {
  std::string simd_barrier = "simdgroup_barrier(mem_flags::mem_threadgroup);\n";
  auto y = run(
      {.body =
           kShared + "a[t] = x[t];\n" + simd_barrier + "y[t] = a[t ^ 31];"});
  CHECK(floats(y)[40] == 55);
  check_fault(
      {.body = kShared + "a[t] = x[t];\n" + simd_barrier + "y[t] = a[63 - t];"},
      "unwritten");
  check_fault(
      {.body = kShared + "if (t < 32) a[t] = x[t];\n" + simd_barrier +
           "y[t] = a[t % 32];"},
      "race: reads byte 0 of threadgroup memory, which thread 0 wrote");
}

TEST_CASE("emulator: a barrier orders the memory that it names") {
  check_fault(
      {.body = kShared +
           "a[t] = x[t];\nthreadgroup_barrier(mem_flags::mem_device);\n"
           "y[t] = a[63 - t];"},
      "race: reads byte 252 of threadgroup memory");
  check_fault(
      {.body = kShared +
           "a[t] = x[t];\nsimdgroup_barrier(mem_flags::mem_none);\n"
           "y[t] = a[t ^ 1];"},
      "race: reads byte 4 of threadgroup memory");
  std::string swap =
      "x[t] = float(t);\nthreadgroup_barrier(FLAGS);\n"
      "float v = x[63 - t];\ny[t] = v;";
  auto with_flags = [&](const std::string& flags) {
    auto body = kShared + swap;
    body.replace(body.find("FLAGS"), 5, flags);
    return TinyKernel{.body = body, .writes_x = true};
  };
  check_fault(
      with_flags("mem_flags::mem_threadgroup"),
      "race: reads element 63 of x, which thread 63 wrote");
  CHECK(floats(run(with_flags("mem_flags::mem_device")))[0] == 63);
  CHECK(
      floats(run(with_flags(
          "mem_flags::mem_device | mem_flags::mem_threadgroup")))[0] == 63);
}

TEST_CASE("emulator: groups do not share memory within a launch") {
  std::string group =
      "uint t = thread_index_in_threadgroup;\n"
      "uint g = threadgroup_position_in_grid.x;\n";
  check_fault(
      {.body = group + "y[t] = float(g);", .groups = {2, 1, 1}},
      "race: writes element 0 of y, which another group wrote; group "
      "(1, 0, 0), thread 0");
  check_fault(
      {.body = group +
           "if (g == 0) x[t] = 1.0f;\ny[g * 64 + t] = g == 0 ? 0.0f : x[t];",
       .shape = {128},
       .groups = {2, 1, 1},
       .writes_x = true},
      "race: reads element 0 of x, which another group wrote");
  check_fault(
      {.body = group +
           "y[g * 64 + t] = g == 1 ? 0.0f : x[t];\nif (g == 1) x[t] = 1.0f;",
       .shape = {128},
       .groups = {2, 1, 1},
       .writes_x = true},
      "race: writes element 0 of x, which another group read");
  // A later launch may.
  TinyKernel kernel{.body = group + "x[t] += 1.0f;\ny[t] = x[t];"};
  kernel.writes_x = true;
  kernel.x = mx::array(std::vector<float>(64, 0.0f).data(), {64});
  run(kernel);
  CHECK(floats(run(kernel))[9] == 2);
}

TEST_CASE("emulator: neighbours may write halves of a word") {
  auto y = run(
      {.body = "threadgroup half a[64];\n"
               "uint t = thread_index_in_threadgroup;\na[t] = half(x[t]);\n" +
           kBarrier + "y[t] = a[63 - t];",
       .dtype = mx::float16});
  CHECK(float(y.data<mx::float16_t>()[1]) == 62);
  check_fault(
      {.body = "threadgroup uchar a[128];\n"
               "uint t = thread_index_in_threadgroup;\n"
               "a[t] = 1;\na[t + 1] = 2;\ny[t] = 0.0f;"},
      "race: writes byte 1 of threadgroup memory, which thread 0 wrote");
}

TEST_CASE("emulator: all threads must come to the same barrier") {
  check_fault(
      {.body = kShared + "if (t < 40) {\n" + kBarrier + "}\ny[t] = x[t];"},
      "divergent barrier: waits at threadgroup_barrier");
  check_fault(
      {.body = kShared + "if (t < 32) {\n" + kBarrier + "}\ny[t] = x[t];"},
      "divergent barrier: waits at threadgroup_barrier");
  check_fault(
      {.body = kShared + "if (t < 32) {\n" + kBarrier + "} else {\n" +
           kBarrier + "}\ny[t] = x[t];"},
      "but thread 32 is at threadgroup_barrier");
  check_fault(
      {.body = kShared + "y[t] = x[t];\nif (t == 63) return;\n" + kBarrier},
      "but thread 63 has ended");
  check_fault(
      {.body = kShared + "for (uint i = 0; i < 2 + t / 63; ++i) {\n" +
           kBarrier + "}\ny[t] = x[t];"},
      "divergent barrier");
  auto y = run(
      {.body = kShared + "for (uint i = 0; i < 5; ++i) {\n" +
           "a[t] = x[t] + float(i);\n" + kBarrier + "y[t] = a[t ^ 1];\n" +
           kBarrier + "}"});
  CHECK(floats(y)[0] == 5);
}

TEST_CASE("emulator: one call of a helper is not another") {
  std::string helper =
      "METAL_FUNC void wait() { "
      "threadgroup_barrier(mem_flags::mem_threadgroup); }";
  check_fault(
      {.body = kShared +
           "if (t < 32) { a[t] = 1.0f; wait(); y[t] = x[t]; }\n"
           "else { wait(); y[t] = x[t] + 1.0f; }",
       .header = helper},
      "divergent barrier");
}
