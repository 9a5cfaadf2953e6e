#include "nightingale/backends/gpu/include_files.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>

namespace nightingale::gpu {

namespace {

namespace fs = std::filesystem;

bool holds(const fs::path& path, const std::string& text) {
  std::ifstream file(path, std::ios::binary);
  std::string found(std::istreambuf_iterator<char>(file), {});
  return file && found == text;
}

} // namespace

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

} // namespace nightingale::gpu
