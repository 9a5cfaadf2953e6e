#include "emulator/tiny_kernel.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// The start of every body.
const std::string kThread = "uint t = thread_index_in_threadgroup;\n";

} // namespace

TEST_CASE("emulator: a kernel runs every thread of every group") {
  auto y = run(
      {.body = kThread +
           "uint3 at = threadgroup_position_in_grid;\n"
           "uint3 all = threadgroups_per_grid;\n"
           "uint group = (at.z * all.y + at.y) * all.x + at.x;\n"
           "y[group * THREADS + t] = x[t] + 100.0f * float(group);",
       .shape = {12 * 64},
       .groups = {3, 2, 2}});
  for (int i = 0; i < 12 * 64; ++i) {
    CHECK(floats(y)[i] == i % 64 + 100.0f * (i / 64));
  }
}

TEST_CASE(
    "emulator: an access out of bounds is a fault that names the buffer") {
  check_fault(
      {.body = kThread + "y[t] = x[t + 1];"},
      "out of bounds: reads element 64 of x, which has 64 elements; group "
      "(0, 0, 0), thread 63");
  check_fault(
      {.body = kThread + "y[t] = x[int(t) - 1];"},
      "out of bounds: reads element -1 of x");
  check_fault(
      {.body = kThread + "y[t + 1] = x[t];"},
      "out of bounds: writes element 64 of y");
  check_fault(
      {.body = kThread + "y[t] = x[t + 1000000000];"}, "out of bounds: reads");
  check_fault(
      {.body = kThread +
           "uint4 v = *(const device uint4*)(x + t / 4 * 4 + 4);\n"
           "y[t] = float(v.x);"},
      "out of bounds: reads element 64 of x");
}

TEST_CASE("emulator: loops that could be a memset or memcpy are seen too") {
  check_fault(
      {.body = kThread +
           "if (t == 0)\nfor (int i = 0; i <= 64; ++i)\ny[i] = 0.0f;"},
      "out of bounds: writes element 64 of y");
  check_fault(
      {.body = kThread +
           "if (t == 0)\nfor (int i = 0; i < 64; ++i)\ny[i] = x[i + 1];"},
      "out of bounds: reads element 64 of x");
}

TEST_CASE("emulator: an index beyond its array is a fault") {
  check_fault(
      {.body = "threadgroup float a[64];\nthreadgroup float b[64];\n" +
           kThread + "a[t + 1] = x[t];\nb[t] = x[t];\ny[t] = x[t];"},
      "out of bounds: an index is beyond its array");
  check_fault(
      {.body = kThread +
           "float a[4];\nfor (uint i = 0; i <= t % 5; ++i) a[i] = x[i];\n"
           "y[t] = a[t % 5];"},
      "out of bounds: an index is beyond its array");
}

TEST_CASE("emulator: a pointer beyond threadgroup memory is a fault") {
  check_fault(
      {.body = "threadgroup float a[64];\n" + kThread +
           "put(a, t + 1, x[t]);\ny[t] = x[t];",
       .header = "METAL_FUNC void put(threadgroup float* a, uint i, float v) {"
                 " a[i] = v; }"},
      "out of bounds: writes byte 256 of threadgroup memory, which has 256 "
      "bytes");
}

TEST_CASE("emulator: inputs are read-only, state is not") {
  TinyKernel kernel{.body = kThread + "writable(x)[t] = 2.0f;\ny[t] = x[t];"};
  check_fault(kernel, "read-only: writes element 0 of x, which is an input");
  kernel.body = kThread + "x[t] = x[t] * 2.0f;\ny[t] = x[t];";
  kernel.writes_x = true;
  kernel.x = mx::array(std::vector<float>(64, 3.0f).data(), {64});
  CHECK(floats(run(kernel)) == std::vector<float>(64, 6.0f));
  CHECK(floats(kernel.x) == std::vector<float>(64, 6.0f));
}

TEST_CASE("emulator: an address must fit what is loaded from it") {
  check_fault(
      {.body = kThread +
           "uint4 v = *(const device uint4*)(x + t % 2);\ny[t] = float(v.x);"},
      "misaligned");
  // A view that begins within its buffer, as MLX hands in a slice.
  auto whole = mx::arange(0, 68, mx::float32, mx::Device::cpu);
  check_fault(
      {.body = kThread +
           "uint4 v = *(const device uint4*)(x + t / 4 * 4);\n"
           "y[t] = float(v.x);",
       .x = mx::slice(whole, {2}, {66}, mx::Device::cpu)},
      "misaligned");
}

TEST_CASE("emulator: tables of constants may be read") {
  auto y = run(
      {.body = kThread + "y[t] = table[t % 4] + x[t];",
       .header = "constant float table[4] = {0.5f, 1.5f, 2.5f, 3.5f};"});
  CHECK(floats(y)[7] == 10.5f);
}

TEST_CASE("emulator: outputs must be written, and before they are read") {
  check_fault(
      {.body = kThread + "if (t != 5) y[t] = x[t];"},
      "unwritten: nobody writes element 5 of y");
  check_fault(
      {.body = kThread + "y[t] += x[t];"},
      "unwritten: reads element 0 of y, which nobody has written");
}

TEST_CASE("emulator: threadgroup memory holds nothing at first") {
  check_fault(
      {.body = "threadgroup float a[64];\n" + kThread +
           "if (threadgroup_position_in_grid.x == 0) a[t] = x[t];\n"
           "y[threadgroup_position_in_grid.x * 64 + t] = a[t];",
       .shape = {128},
       .groups = {2, 1, 1}},
      "unwritten: reads byte 0 of threadgroup memory, which nobody has "
      "written; group (1, 0, 0), thread 0");
}

TEST_CASE("emulator: what C++ leaves undefined is a fault") {
  check_fault(
      {.body = kThread + "y[t] = float(1u << (t + 1));"},
      "undefined: a shift by too many bits");
  check_fault(
      {.body = kThread + "y[t] = float(64u / t);"},
      "undefined: division by zero");
  check_fault(
      {.body = kThread + "y[t] = float(int(t) * 100000000);"},
      "undefined: a signed product overflows");
  check_fault(
      {.body = kThread + "y[t] = float(int(x[t] * 1e9f));"},
      "undefined: a float does not fit an integer");
}
