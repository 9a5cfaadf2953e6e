#include "nightingale/backends/gpu/cuda_modules.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <sstream>
#include <string_view>
#include <vector>

#include "mlx/version.h"
#include "nightingale/backends/gpu/include_files.h"
#include "nightingale/backends/gpu/nvrtc.h"

namespace nightingale::gpu {

namespace {

namespace fs = std::filesystem;

// MLX's own, and the words in them that it or our kernels use.
constexpr std::string_view kHeaders =
    "\n#include \"mlx/backend/cuda/device/utils.cuh\"\n"
    "\n#include <cooperative_groups.h>\n\n";
constexpr std::string_view kGroups = "namespace cg = cooperative_groups;\n\n";
constexpr std::string_view kTypes =
    "#include <cuda_bf16.h>\n"
    "#include <cuda_fp16.h>\n"
    "typedef signed char int8_t;\n"
    "typedef unsigned char uint8_t;\n"
    "typedef short int16_t;\n"
    "typedef unsigned short uint16_t;\n"
    "typedef int int32_t;\n"
    "typedef unsigned int uint32_t;\n"
    "typedef long int64_t;\n"
    "typedef unsigned long uint64_t;\n"
    "#define INFINITY __int_as_float(0x7f800000)\n";

// Folders with the CUDA runtime's headers, the first that MLX would take first.
std::vector<std::string> cuda_headers() {
  std::vector<fs::path> places;
  Dl_info library{};
  if (dladdr(reinterpret_cast<const void*>(&mlx::core::version), &library)) {
    auto packages =
        fs::path(library.dli_fname).parent_path().parent_path().parent_path();
    places.push_back(packages / "nvidia" / "cu13" / "include");
    places.push_back(packages / "nvidia" / "cuda_runtime" / "include");
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* home = std::getenv(variable)) {
      places.push_back(fs::path(home) / "include");
    }
  }
  places.push_back("/usr/local/cuda/include");
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& place : places) {
    if (fs::exists(place / "cuda_fp16.h", ignored)) {
      found.push_back(place.string());
    }
  }
  return found;
}

} // namespace

std::string module_name(const GeneratedKernel& kernel) {
  std::ostringstream name;
  name << kernel.name << "_" << std::hex
       << std::hash<std::string>{}(kernel.text);
  return name.str();
}

namespace {

struct ModuleFiles {
  fs::path code, names;
};

// Nothing where MLX does not look for files, or would elsewhere.
std::optional<ModuleFiles> files_of(const GeneratedKernel& kernel) {
  constexpr size_t longest = 245; // MLX spreads longer names over folders
  auto name = module_name(kernel);
  if (module_folder().empty() || name.size() > longest) {
    return std::nullopt;
  }
  auto folder = fs::path(module_folder());
  return ModuleFiles{folder / (name + ".ptx"), folder / (name + ".txt")};
}

} // namespace

std::optional<std::string> without_headers(const std::string& text) {
  auto groups = text.find(kGroups);
  if (!text.starts_with(kHeaders) || groups == std::string::npos) {
    return std::nullopt;
  }
  std::string light = text;
  light.erase(groups, kGroups.size());
  light.replace(0, kHeaders.size(), kTypes);
  return light;
}

std::string module_folder() {
  static const std::string folder = [] {
    std::error_code error;
    fs::path place;
    if (const char* named = std::getenv("MLX_PTX_CACHE_DIR")) {
      place = fs::absolute(named, error);
    } else {
      place =
          fs::temp_directory_path(error) / "mlx" / mlx::core::version() / "ptx";
    }
    if (!error) {
      fs::create_directories(place, error);
    }
    bool writable = !error && access(place.c_str(), W_OK) == 0;
    return writable ? place.string() : std::string();
  }();
  return folder;
}

bool provide_module(
    const GeneratedKernel& kernel,
    const std::string& architecture) {
  auto files = files_of(kernel);
  auto text = without_headers(kernel.text);
  auto compiler = Nvrtc::find();
  if (!files || !text || !compiler) {
    return false;
  }
  std::error_code ignored;
  if (fs::exists(files->code, ignored) && fs::exists(files->names, ignored)) {
    return true;
  }
  std::vector<std::string> options{
      "--device-as-default-execution-space",
      "--gpu-architecture=" + architecture};
  for (const auto& folder : cuda_headers()) {
    options.push_back("--include-path=" + folder);
  }
  auto full_name = "mlx::core::cu::" + kernel.name;
  auto code = compiler->compile(*text, full_name, options);
  // The names first: MLX looks for the code alone.
  return code &&
      write_whole(
             files->names.string(), full_name + "\t" + code->mangled + "\n") &&
      write_whole(files->code.string(), code->bytes);
}

bool remove_module(const GeneratedKernel& kernel) {
  auto files = files_of(kernel);
  if (!files) {
    return false;
  }
  std::error_code ignored;
  bool had_code = fs::remove(files->code, ignored);
  return fs::remove(files->names, ignored) || had_code;
}

} // namespace nightingale::gpu
