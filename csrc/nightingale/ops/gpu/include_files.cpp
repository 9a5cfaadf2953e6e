#include "nightingale/ops/gpu/include_files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace nightingale::gpu {

namespace {

namespace fs = std::filesystem;

std::string& folder_to_remove() {
  static auto* folder = new std::string;
  return *folder;
}

void remove_folder() {
  std::error_code ignored;
  fs::remove_all(folder_to_remove(), ignored);
}

} // namespace

IncludeFiles::IncludeFiles() {
  std::error_code error;
  auto parent = fs::temp_directory_path(error);
  if (error) {
    return;
  }
  std::string name = (parent / "nightingale-kernels-XXXXXX").string();
  if (::mkdtemp(name.data())) {
    folder_ = name;
    folder_to_remove() = name;
    std::atexit(remove_folder);
  }
}

std::string IncludeFiles::keep(
    const std::string& name,
    const std::string& text) {
  std::lock_guard<std::mutex> lock(mutex_);
  auto path = fs::path(folder_) / (name + std::to_string(count_++) + ".h");
  if (!folder_.empty()) {
    std::ofstream file(path);
    file << text;
    file.close();
    if (file) {
      return "#include \"" + path.string() + "\"\n";
    }
  }
  return text;
}

} // namespace nightingale::gpu
