#pragma once

#include <optional>
#include <string>
#include <vector>

namespace nightingale::mlx_internals {

// NVIDIA's run-time compiler, loaded at run time: MLX's CUDA backend brings it.
class Nvrtc {
 public:
  struct Code {
    std::string bytes; // for the architecture that the options name
    std::string mangled; // the kernel's name in them
  };

  // nullptr if it is not installed.
  static const Nvrtc* find();

  // Compiles a text with the kernel `name`; nothing if that fails.
  std::optional<Code> compile(
      const std::string& text,
      const std::string& name,
      const std::vector<std::string>& options) const;

 private:
  using Program = struct ProgramTag*;
  using Strings = const char* const*;

  bool load(void* library);

  int (*create_)(Program*, const char*, const char*, int, Strings, Strings) =
      nullptr;
  int (*destroy_)(Program*) = nullptr;
  int (*name_)(Program, const char*) = nullptr;
  int (*compile_)(Program, int, Strings) = nullptr;
  int (*lowered_)(Program, const char*, const char**) = nullptr;
  int (*size_)(Program, size_t*) = nullptr;
  int (*bytes_)(Program, char*) = nullptr;
};

} // namespace nightingale::mlx_internals
