#include "nightingale/mlx_internals/ptx_cache.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "io/file_writers.h"
#include "mlx/backend/cuda/cuda.h"
#include "nightingale/mlx_internals/nvrtc.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// As MLX puts a kernel together.
const std::string kText =
    "\n#include \"mlx/backend/cuda/device/utils.cuh\"\n"
    "\n#include <cooperative_groups.h>\n\n"
    "#define TWICE 2\n"
    "namespace mlx::core::cu {\n\n"
    "namespace cg = cooperative_groups;\n\n"
    "__global__ void custom_kernel_twice_4(\n"
    "    const float* x,\n"
    "    float* y) {\n"
    "  constexpr int N = 4;\n\n"
    "if (threadIdx.x < N) y[threadIdx.x] = TWICE * x[threadIdx.x];\n"
    "}\n\n} // namespace mlx::core::cu\n";

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST_CASE("a module's name is its kernel's and a hash of its text") {
  mlx_internals::GeneratedKernel kernel{"twice", kText};
  auto name = mlx_internals::module_name(kernel);
  CHECK(name.starts_with("twice_"));
  CHECK(mlx_internals::module_name({"twice", kText}) == name);
  CHECK(mlx_internals::module_name({"twice", kText + " "}) != name);
}

TEST_CASE("a kernel does without MLX's headers where the text is as expected") {
  auto light = mlx_internals::without_headers(kText);
  REQUIRE(light);
  CHECK(light->find("mlx/backend") == std::string::npos);
  CHECK(light->find("cooperative_groups") == std::string::npos);
  CHECK(
      light->find("#define TWICE 2\nnamespace mlx::core::cu {\n\n__global__") !=
      std::string::npos);
  CHECK_FALSE(mlx_internals::without_headers("// new\n" + kText));
}

TEST_CASE("NVRTC, where there is one, compiles a kernel under its full name") {
  auto compiler = mlx_internals::Nvrtc::find();
  if (!compiler) {
    return; // MLX's CUDA backend is not installed
  }
  // Without CUDA's headers, which may not be there.
  std::string text =
      "namespace a { __global__ void twice(float* x) { *x *= 2; } }";
  std::vector<std::string> options{"--gpu-architecture=sm_90"};
  auto code = compiler->compile(text, "a::twice", options);
  REQUIRE(code);
  CHECK(code->mangled.find("twice") != std::string::npos);
  CHECK(
      code->bytes.starts_with("\x7f"
                              "ELF"));
  CHECK(code->bytes.find(code->mangled) != std::string::npos);
  CHECK_FALSE(compiler->compile("no kernel", "a::twice", options));
}

TEST_CASE("a module is put where MLX looks, and taken away") {
  mlx_internals::GeneratedKernel kernel{"custom_kernel_twice_4", kText};
  auto stem =
      mlx_internals::module_folder() + "/" + mlx_internals::module_name(kernel);
  mlx_internals::remove_module(kernel);
  bool provided = mlx_internals::provide_module(kernel, "sm_90a");
  if (mlx::core::cu::is_available()) {
    CHECK(provided);
  }
  if (provided) {
    CHECK(read(stem + ".ptx")
              .starts_with("\x7f"
                           "ELF"));
    CHECK(read(stem + ".txt")
              .starts_with("mlx::core::cu::custom_kernel_twice_4\t_Z"));
    std::filesystem::remove(stem + ".txt"); // as a cleaner of such folders may
    CHECK(mlx_internals::provide_module(kernel, "sm_90a"));
    CHECK(std::filesystem::exists(stem + ".txt"));
  } else {
    std::ofstream(stem + ".ptx") << "damaged";
  }
  CHECK(mlx_internals::remove_module(kernel));
  CHECK_FALSE(std::filesystem::exists(stem + ".ptx"));
  CHECK_FALSE(std::filesystem::exists(stem + ".txt"));
  CHECK_FALSE(mlx_internals::remove_module(kernel));
}

TEST_CASE("a text is included from a file that is the same whenever it is") {
  TempDir dir;
  auto line = mlx_internals::include_line(dir.path(), "norm", "int a;\n");
  CHECK(line.starts_with("#include \"" + dir.path() + "/norm-"));
  auto path = line.substr(10, line.size() - 12);
  CHECK(read(path) == "int a;\n");
  CHECK(mlx_internals::include_line(dir.path(), "norm", "int a;\n") == line);
  CHECK(mlx_internals::include_line(dir.path(), "norm", "int b;\n") != line);
  // Whatever else is found under its name is replaced.
  std::ofstream(path) << "int";
  CHECK(mlx_internals::include_line(dir.path(), "norm", "int a;\n") == line);
  CHECK(read(path) == "int a;\n");
}

TEST_CASE("a text goes without a file where none can be written") {
  CHECK(mlx_internals::include_line("", "norm", "int a;\n") == "int a;\n");
  CHECK(
      mlx_internals::include_line("/nowhere/to/be", "norm", "int a;\n") ==
      "int a;\n");
}
