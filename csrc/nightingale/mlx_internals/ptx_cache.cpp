#include "nightingale/mlx_internals/ptx_cache.h"

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "nightingale/mlx_internals/nvrtc.h"
#include "nightingale/mlx_internals/version.h"

namespace nightingale::mlx_internals {

namespace {

namespace fs = std::filesystem;

// The start of the text that MLX generates, and the definitions in those
// headers that it or our kernels use.
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

// Folders with the CUDA runtime's headers, in the order in which MLX looks.
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

bool holds(const fs::path& path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  std::string found(std::istreambuf_iterator<char>(file), {});
  return file && found == text;
}

// Writes a file that appears complete or not at all.
bool write_whole(const std::string& path, const std::string& bytes) {
  static std::atomic<int> count{0};
  auto partial = path + "." + std::to_string(::getpid()) + "." +
      std::to_string(count++) + ".partial";
  std::ofstream file(partial, std::ios::binary);
  file << bytes;
  file.close();
  std::error_code error;
  if (file) {
    fs::rename(partial, path, error);
  }
  if (!file || error) {
    fs::remove(partial, error);
    return false;
  }
  return true;
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

// Nothing where MLX does not look for files or uses another folder.
std::optional<ModuleFiles> files_of(const GeneratedKernel& kernel) {
  constexpr size_t longest = 245; // MLX splits longer names over folders
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

std::string include_line(
    const std::string& folder,
    const std::string& name,
    const std::string& text) {
  if (folder.empty()) {
    return text;
  }
  std::ostringstream file;
  file << name << "-" << std::hex << std::hash<std::string>{}(text) << ".h";
  auto path = fs::path(folder) / file.str();
  if (!holds(path, text) && !write_whole(path.string(), text)) {
    return text;
  }
  return "#include \"" + path.string() + "\"\n";
}

} // namespace nightingale::mlx_internals
