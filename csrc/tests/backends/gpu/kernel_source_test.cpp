#include "nightingale/backends/gpu/kernel_source.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "emulator/tokens.h"
#include "nightingale/backends/gpu/metal_text.h"
#include "nightingale/error.h"

using namespace nightingale;

namespace {

std::string body_for(
    const std::string& body,
    const gpu::KernelNumbers& numbers) {
  gpu::KernelSource source;
  source.name = "some";
  source.body = body;
  return gpu::specialized(source, numbers).body;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (const auto& token : emulator::tokens_of(text)) {
    words.push_back(token.text);
  }
  return words;
}

} // namespace

TEST_CASE("kernel text: a launch gets the lines whose conditions hold") {
  std::string text =
      "a\n#if BITS < 16\nb\n#if BITS == 8\nc\n#else\nd\n#endif\n"
      "#else\ne\n#endif\n#if !NORM\nf\n#endif\n#if WATCH > 1\ng\n#endif\nh\n";
  CHECK(
      body_for(text, {{"BITS", 8}, {"NORM", 0}, {"WATCH", 2}}) ==
      "a\nb\nc\nf\ng\nh\n");
  CHECK(
      body_for(text, {{"BITS", 4}, {"NORM", 1}, {"WATCH", 1}}) ==
      "a\nb\nd\nh\n");
  CHECK(
      body_for(text, {{"BITS", 16}, {"NORM", 1}, {"WATCH", 0}}) == "a\ne\nh\n");
  CHECK_THROWS_WITH_AS(
      body_for(text, {{"NORM", 1}, {"WATCH", 0}}),
      "some.metal: cannot decide #if BITS < 16: expected a number that the "
      "kernel is compiled for",
      Error);
  CHECK_THROWS_AS(body_for("#if BITS + 1\n#endif\n", {{"BITS", 8}}), Error);
}

TEST_CASE("kernel text: spaces are left out where nothing changes") {
  CHECK(
      gpu::without_spaces("int a = b + -c * 2;\n#pragma unroll 2\nreturn a;") ==
      "int a=b+ -c*2;\n#pragma unroll 2\nreturn a;\n");
  CHECK(
      gpu::without_spaces("for (;;) {\nif (a) {\nb();\n}\n}\n#if C\n}\n") ==
      "for(;;){\nif(a){\nb();}}\n#if C\n}\n");
  for (const auto& kernel : gpu::kernel_sources()) {
    CAPTURE(kernel.name);
    for (const auto& text : {kernel.header, kernel.body}) {
      auto dense = gpu::without_spaces(text);
      CHECK(words_of(dense) == words_of(text));
    }
  }
}

TEST_CASE("kernel text: phrases are shortened where they are many") {
  std::string function = "METAL_FUNC int a(const device int*p);\n";
  auto once = gpu::with_short_phrases({function, ""});
  CHECK(once.header == function);
  auto many = gpu::with_short_phrases(
      {function + function + function,
       "const devices;METAL_FUNC const device"});
  std::string shorter = "FN int a(CD int*p);\n";
  CHECK(
      many.header ==
      "#define CD const device\n#define FN METAL_FUNC\n" + shorter + shorter +
          shorter);
  CHECK(many.body == "const devices;FN CD");
  for (const auto& kernel : gpu::kernel_sources()) {
    CAPTURE(kernel.name);
    std::string text = kernel.header + kernel.body;
    for (auto word : words_of(text)) {
      CHECK_FALSE(
          (word == "FN" || word == "CD" || word == "TF" || word == "SX"));
    }
  }
}

TEST_CASE("kernel text: what a kernel does not use is left out") {
  std::string header =
      "#include <metal_simdgroup_matrix>\n"
      "template <typename T> struct Pair {\nT a, b;\n};\n"
      "template <> struct Pair<float> {\nfloat2 v;\n};\n"
      "METAL_FUNC float inner(float v) { return v; }\n"
      "METAL_FUNC float inner(\nfloat v, float by) {\nreturn v * by;\n}\n"
      "template <int N>\nMETAL_FUNC Pair<float> outer(float v) {\n"
      "return {inner(v), N};\n}\n"
      "template <typename T> using Two = Pair<T>;\n"
      "METAL_FUNC float unused(float v) { return inner(v); }\n";
  auto lines = [&](const std::string& body) {
    auto kept = gpu::without_unused(header, body);
    return std::count(kept.begin(), kept.end(), '\n');
  };
  CHECK(lines("y[0] = 1.0f;") == 1);
  CHECK(lines("y[0] = inner(1.0f);") == 1 + 5);
  CHECK(lines("Two<half> two;") == 1 + 6 + 1);
  CHECK(lines("y[0] = outer<2>(1.0f).v.x;") == 1 + 6 + 5 + 4);
  CHECK(lines("y[0] = unused(1.0f);") == 1 + 5 + 1);
  CHECK(gpu::without_unused(header, "outer Two unused") == header);
}

TEST_CASE(
    "kernel text: Metal gets the tile products only where they are used") {
  auto header = [](const char* kernel) {
    return gpu::metal_text(gpu::kernel_source(kernel)).header;
  };
  CHECK(header("tile_linear").find("simdgroup_matrix") != std::string::npos);
  CHECK(header("euler_step").find("simdgroup_matrix") == std::string::npos);
  CHECK(header("euler_step").find("with_byte") == std::string::npos);
}

TEST_CASE("kernel text: Metal gets ASCII without comments") {
  for (const auto& kernel : gpu::kernel_sources()) {
    CAPTURE(kernel.name);
    auto [header, body] = gpu::metal_text(kernel);
    auto text = header + body;
    CHECK(text.find("//") == std::string::npos);
    CHECK(std::all_of(text.begin(), text.end(), [](char c) { return c > 0; }));
  }
}
