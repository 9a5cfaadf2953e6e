#include "nightingale/mlx_internals/nvrtc.h"

#include <dlfcn.h>

namespace nightingale::mlx_internals {

namespace {

constexpr int kSuccess = 0;

template <typename Function>
bool find_function(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
  return function != nullptr;
}

} // namespace

const Nvrtc* Nvrtc::find() {
  static const Nvrtc* found = []() -> const Nvrtc* {
    for (const char* name :
         {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
      auto compiler = new Nvrtc;
      if (void* library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
          library && compiler->load(library)) {
        return compiler;
      }
      delete compiler;
    }
    return nullptr;
  }();
  return found;
}

bool Nvrtc::load(void* library) {
  return find_function(library, "nvrtcCreateProgram", create_) &&
      find_function(library, "nvrtcDestroyProgram", destroy_) &&
      find_function(library, "nvrtcAddNameExpression", name_) &&
      find_function(library, "nvrtcCompileProgram", compile_) &&
      find_function(library, "nvrtcGetLoweredName", lowered_) &&
      find_function(library, "nvrtcGetCUBINSize", size_) &&
      find_function(library, "nvrtcGetCUBIN", bytes_);
}

std::optional<Nvrtc::Code> Nvrtc::compile(
    const std::string& text,
    const std::string& name,
    const std::vector<std::string>& options) const {
  Program program = nullptr;
  if (create_(&program, text.c_str(), "kernel.cu", 0, nullptr, nullptr) !=
      kSuccess) {
    return std::nullopt;
  }
  std::vector<const char*> words;
  for (const auto& option : options) {
    words.push_back(option.c_str());
  }
  Code code;
  const char* mangled = nullptr;
  size_t size = 0;
  bool made = name_(program, name.c_str()) == kSuccess &&
      compile_(program, words.size(), words.data()) == kSuccess &&
      lowered_(program, name.c_str(), &mangled) == kSuccess &&
      size_(program, &size) == kSuccess;
  if (made) {
    code.mangled = mangled;
    code.bytes.resize(size);
    made = bytes_(program, code.bytes.data()) == kSuccess;
  }
  destroy_(&program);
  return made ? std::optional(std::move(code)) : std::nullopt;
}

} // namespace nightingale::mlx_internals
