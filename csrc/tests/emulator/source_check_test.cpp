#include "emulator/tiny_kernel.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

const std::string kThread = "uint t = thread_index_in_threadgroup;\n";
const std::string kCopy = "\ny[t] = x[t];";

// With `statement` in the body, or `header` before it.
TinyKernel with(const std::string& statement, const std::string& header = "") {
  return {.body = kThread + statement + kCopy, .header = header};
}

} // namespace

TEST_CASE("emulator: words that MSL does not have") {
  check_fault(with("double v = 1.0f;"), "not MSL: MSL has no double");
  check_fault(with("long double v = 1.0f;"), "not MSL: MSL has no double");
  check_fault(with("try { y[t] = 0.0f; }"), "not MSL: MSL has no exceptions");
  check_fault(with("throw 1;"), "not MSL: MSL has no exceptions");
  check_fault(with("auto v = new int;"), "not MSL: MSL has no new and delete");
  check_fault(with("goto end;"), "not MSL: MSL has no goto");
  check_fault(with("float v = std::exp(1.0f);"), "not MSL: MSL has no std::");
  check_fault(
      with("", "struct S { virtual void f() {} };"),
      "not MSL: MSL has no virtual functions");
  check_fault(
      with("auto f = [](float v) { return v; };"), "MSL has no lambdas");
  check_fault(with("auto& id = typeid(t);"), "MSL has no run-time types");
}

TEST_CASE("emulator: numbers are float") {
  for (auto number : {"1.0", "1e3", ".5", "2.", "0x1p4", "1.0l", "1.0h"}) {
    check_fault(
        with("float v = " + std::string(number) + ";"),
        "not MSL: a number that is not float (1.0f) is double");
  }
  auto y = run(
      {.body = kThread +
           "y[t] = 1.0f + 1e3f + .5f + 0x1p4f + float(0xe + 2u + 1'000);"});
  CHECK(floats(y)[0] == 1.0f + 1e3f + 0.5f + 16.0f + 1016.0f);
}

TEST_CASE("emulator: recursion, straight and in a circle") {
  check_fault(
      with(
          "",
          "METAL_FUNC int down(int n) { return n == 0 ? 0 : down(n - 1); }"),
      "not MSL: MSL has no recursion, at `down` in line 1");
  check_fault(
      with(
          "",
          "METAL_FUNC int odd(int n);\n"
          "METAL_FUNC int even(int n) { return n == 0 || odd(n - 1); }\n"
          "METAL_FUNC int odd(int n) { return n != 0 && even(n - 1); }"),
      "not MSL: MSL has no recursion");
  check_fault(
      with(
          "",
          "struct S { template <int N> METAL_FUNC static int f(int a, int b) {"
          " return a < 0 ? b : f<N>(a - 1, b); } };"),
      "not MSL: MSL has no recursion");
  // Overloads and functions of several structs may call each other.
  auto y = run(
      {.body = kThread + "y[t] = twice(x[t]) + A::of(x[t]);",
       .header =
           "METAL_FUNC float twice(float v, float by) { return v * by; }\n"
           "METAL_FUNC float twice(float v) { return twice(v, 2.0f); }\n"
           "struct B { METAL_FUNC static float of(float v) {"
           " return v; } };\n"
           "struct A { METAL_FUNC static float of(float v) {"
           " return B::of(v); } };"});
  CHECK(floats(y)[5] == 15);
}

TEST_CASE("emulator: every pointer and reference names its address space") {
  std::string without =
      "not MSL: a pointer or reference needs an address space";
  check_fault(
      with("", "METAL_FUNC float first(const float* p) { return p[0]; }"),
      without);
  check_fault(with("", "METAL_FUNC void put(float& p) { p = 0.0f; }"), without);
  check_fault(
      with(
          "",
          "template <typename T> METAL_FUNC T first(T const* p) {"
          " return p[0]; }"),
      without);
  check_fault(with("const uint4* p = (const device uint4*)x;"), without);
  check_fault(with("uint4 v = *(const uint4*)x;"), without);
  check_fault(
      with(
          "",
          "METAL_FUNC float first(const float (*p)[4]) { return p[0][0]; }"),
      without);
  std::string row = "template <int N> struct Row { float v[N]; };\n";
  check_fault(
      with("", row + "METAL_FUNC void put(Row<2>& p) { p.v[0] = 0.0f; }"),
      without);
  auto y = run(
      {.body = kThread +
           "float v[2];\nfill(v, x);\nfloat w = 0.0f;\nput(w);\n"
           "auto p = x + t;\ny[t] = v[1] * 2.0f + w * *p;",
       .header = row +
           "METAL_FUNC void fill(thread float* v, const device float* x) {"
           " v[0] = x[0]; v[1] = x[1]; }\n"
           "METAL_FUNC void put(thread float& p) { p = 3.0f; }\n"
           "METAL_FUNC void put(thread const Row<2>& p) {}"});
  CHECK(floats(y)[5] == 17);
}

TEST_CASE("emulator: address spaces do not mix") {
  std::string first =
      "METAL_FUNC float first(const device float* p) { return p[0]; }";
  check_fault(
      {.body = "threadgroup float a[64];\n" + kThread +
           "a[t] = x[t];\ny[t] = first(a);",
       .header = first},
      "does not compile");
  check_fault(
      {.body = kThread + "float v[2] = {1.0f, 2.0f};\ny[t] = first(v);",
       .header = first},
      "does not compile");
  check_fault(
      with("auto p = (const threadgroup float*)x;"), "does not compile");
  check_fault(
      with("float v = *(const threadgroup float*)(x + t);"),
      "does not compile");
  check_fault(with("auto p = (device float*)x;"), "does not compile");
  check_fault(
      with("threadgroup float* p = x;"),
      "not MSL: CUDA would share this pointer");
}

TEST_CASE("emulator: where threadgroup memory and attributes may stand") {
  check_fault(
      with("", "METAL_FUNC void f() { threadgroup float a[4]; a[0] = 0.0f; }"),
      "not MSL: only the kernel's body has threadgroup memory");
  check_fault(
      with("{ threadgroup float a[64]; a[t] = x[t]; }"),
      "not MSL: threadgroup memory is declared at the top level");
  check_fault(
      with("", "METAL_FUNC uint f() { return thread_index_in_simdgroup; }"),
      "not MSL: only the kernel's body has attributes");
  check_fault(
      with("uint i = thread_position_in_grid.x;"),
      "not MSL: kernels do without this attribute");
}

TEST_CASE("emulator: helpers are inlined and have names of their own") {
  check_fault(
      with("", "float half_of(float v) { return v * 0.5f; }"),
      "not MSL: helpers are METAL_FUNC, at `half_of`");
  check_fault(
      with("", "METAL_FUNC float dot(float a, float b) { return a * b; }"),
      "not MSL: Metal or MLX has a function of this name, at `dot`");
  check_fault(
      with("static float v;"), "not MSL: functions have no static variables");
  check_fault(
      with("float (*f)(float);"),
      "not MSL: kernels do without function pointers");
}

TEST_CASE("emulator: structs have no base classes") {
  std::string base = "struct Base { float v; };\n";
  check_fault(
      with("", base + "struct Derived : Base {};"),
      "not MSL: structs have no base classes, at `Derived` in line 2");
  check_fault(
      with("", base + "class Derived : public Base {};"),
      "not MSL: structs have no base classes");
  check_fault(
      with(
          "",
          base +
              "template <typename T, int N> struct Two {};\n"
              "template <typename T> struct Two<T, 8> : Base {};"),
      "not MSL: structs have no base classes, at `Two` in line 3");
  auto y = run(
      {.body = kThread + "Two<float, 8>::type two;\n" +
           "two.v = t > 4u ? x[t] : 0.0f;\ny[t] = two.v;",
       .header = base +
           "template <typename T, int N> struct Two {};\n"
           "template <class T> struct Two<T, 8> { using type = Base; };"});
  CHECK(floats(y)[5] == 5);
}

TEST_CASE("emulator: functions of structs name their object's address space") {
  std::string without =
      "not MSL: functions of structs are `thread` or `const thread`, at `get`";
  auto of = [](const std::string& function) {
    return "template <int N> struct S { float v[N];\n" + function + " };";
  };
  check_fault(
      with("", of("METAL_FUNC float get(int i) { return v[i]; }")), without);
  check_fault(
      with("", of("METAL_FUNC float get(int i) const { return v[i]; }")),
      without);
  check_fault(
      with("", of("METAL_FUNC void get(thread float* to) { to[0] = v[0]; }")),
      without);
  auto y = run(
      {.body = kThread + "S<2> s;\ns.set(x[t]);\ny[t] = s.get(1) + s.one();",
       .header =
           of("METAL_FUNC void set(float a) thread { v[0] = v[1] = a; }\n"
              "METAL_FUNC float get(int i) const thread { return v[i]; }\n"
              "METAL_FUNC static float one() { return 1.0f; }")});
  CHECK(floats(y)[5] == 6);
}

TEST_CASE("emulator: what is later than MSL's C++ does not compile") {
  check_fault(
      with("", "template <typename T> concept Any = true;"),
      "does not compile");
  check_fault(with("float a[t];"), "does not compile");
  check_fault(with("float v = unknown(x[t]);"), "does not compile");
  check_fault(with("float v = exp(half(x[t]));"), "does not compile");
  check_fault(with("int v = min(1, 2u);"), "does not compile");
  check_fault(with("float v;\nv += x[t];"), "does not compile");
}
