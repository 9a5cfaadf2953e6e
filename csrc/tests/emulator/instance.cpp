#include "emulator/instance.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "emulator/kernel_text.h"

extern char** environ;

namespace nightingale::emulator {

namespace {

namespace fs = std::filesystem;
using Command = std::vector<std::string>;

// Given by CMake.
const std::string kCompiler =
    NIGHTINGALE_KERNEL_COMPILER; // its words, with | between
const std::string kLinker = NIGHTINGALE_KERNEL_LINKER; // or the compiler
const std::string kAddr2line = NIGHTINGALE_ADDR2LINE;
const std::string kHeaders = NIGHTINGALE_EMULATOR_HEADERS;
const fs::path kBuildCache = NIGHTINGALE_KERNEL_CACHE;

Command compiler() {
  if (!has_kernel_compiler()) {
    throw std::runtime_error(
        "no clang 17 or later was found to compile kernels with; install one, "
        "or `pip install ziglang`, and configure again");
  }
  std::istringstream words(kCompiler);
  Command command;
  for (std::string word; std::getline(words, word, '|');) {
    command.push_back(word);
  }
  return command;
}

// Half-precision numbers round after every operation, and no product and sum
// become one.
const Command kLanguage{
    "-x",
    "c++",
    "-I",
    kHeaders,
    "-nostdinc",
    "-fno-builtin",
    "-fno-exceptions",
    "-fno-rtti",
    "-ffp-contract=off",
    "-Xclang",
    "-ffloat16-excess-precision=none",
    "-Xclang",
    "-fbfloat16-excess-precision=none"};

// MSL is C++14 with `if constexpr` and a little more. It converts float and
// integers to bfloat only where the text says so; here they become no float of
// fewer digits either.
const Command kTyped{
    "-std=c++14",
    "-S", // zig wants a file to come out
    "-emit-llvm",
    "-O0",
    "-DMSL_TYPED",
    "-pedantic-errors",
    "-Wno-c++17-extensions",
    "-Werror=implicit-float-conversion",
    "-Werror=uninitialized",
    "-Werror=sometimes-uninitialized"};

const Command kRun{
    "-std=c++17",
    "-O1",
    "-fno-optimize-sibling-calls", // a call's address says where it stands
    "-fno-unroll-loops",
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-gline-tables-only",
    "-w",
    "-fPIC",
    "-c",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fsanitize-coverage=func,trace-pc,trace-loads,trace-stores",
    "-fsanitize=array-bounds,alignment,shift-exponent,signed-integer-overflow,"
    "integer-divide-by-zero,float-cast-overflow,bool",
    "-fsanitize-recover=all"};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Starts a command whose output goes to `log`.
pid_t start(const Command& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (const auto& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(
      &files, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t child;
  int error = posix_spawnp(
      &child, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) {
    throw std::runtime_error("cannot start " + command[0]);
  }
  return child;
}

bool succeeds(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::string hex_hash(const std::string& text) {
  uint64_t hash = 14695981039346656037ull; // FNV-1a
  for (unsigned char c : text) {
    hash = (hash ^ c) * 1099511628211ull;
  }
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016lx", (unsigned long)hash);
  return digits;
}

Command with(Command command, const Command& more) {
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

std::string headers() {
  std::string all;
  for (auto header : {"machine.h", "msl.h", "hooks.h", "hooks.inl"}) {
    all += read(fs::path(kHeaders) / header);
  }
  return all;
}

std::string joined(const Command& command) {
  std::string all;
  for (const auto& word : command) {
    all += word + "\n";
  }
  return all;
}

// A file of the build's cache or else of this process's.
fs::path cached(const std::string& name) {
  for (const fs::path& folder : {kBuildCache, kernel_cache()}) {
    if (fs::exists(folder / name)) {
      return folder / name;
    }
  }
  return {};
}

// Names of files while they are made, as other processes may make the same.
struct OwnFiles {
  fs::path stem;
  std::vector<const char*> suffixes;

  explicit OwnFiles(const std::string& key, std::vector<const char*> all)
      : stem(kernel_cache() / (key + "." + std::to_string(getpid()))),
        suffixes(std::move(all)) {
    fs::create_directories(kernel_cache());
  }
  ~OwnFiles() {
    for (auto suffix : suffixes) {
      std::error_code ignored;
      fs::remove(file(suffix), ignored);
    }
  }
  fs::path file(const char* suffix) const {
    return fs::path(stem) += suffix;
  }
};

[[noreturn]] void fail_to_compile(const std::string& log) {
  throw std::runtime_error("does not compile: " + log);
}

// The object that every kernel is linked with.
fs::path compiled_hooks() {
  auto build = with(with(compiler(), kLanguage), kRun);
  auto key = hex_hash(joined(build) + headers());
  if (auto object = cached(key + ".o"); !object.empty()) {
    return object;
  }
  OwnFiles own(key, {".log", ".o"});
  auto source = (fs::path(kHeaders) / "hooks.inl").string();
  auto command = with(build, {source, "-o", own.file(".o").string()});
  if (!succeeds(start(command, own.file(".log")))) {
    fail_to_compile(read(own.file(".log")));
  }
  auto object = kernel_cache() / (key + ".o");
  fs::rename(own.file(".o"), object);
  return object;
}

// A linker of its own spares the compiler two more processes.
Command linker() {
  auto command =
      kLinker.empty() ? with(compiler(), {"-nostdlib"}) : Command{kLinker};
  return with(command, {"-shared"});
}

// The library, compiled unless it has been.
fs::path compiled(const std::string& typed, const std::string& run) {
  auto check = with(with(compiler(), kLanguage), kTyped);
  auto build = with(with(compiler(), kLanguage), kRun);
  auto words = joined(with(with(check, build), linker()));
  auto key = hex_hash(typed + run + words + headers());
  if (auto library = cached(key + ".so"); !library.empty()) {
    return library;
  }
  auto hooks = compiled_hooks();
  OwnFiles own(
      key, {".typed.cpp", ".cpp", ".typed.log", ".log", ".ll", ".o", ".so"});
  auto name = [&](const char* suffix) { return own.file(suffix).string(); };
  write(name(".typed.cpp"), typed);
  write(name(".cpp"), run);
  auto checking = start(
      with(check, {name(".typed.cpp"), "-o", name(".ll")}), name(".typed.log"));
  auto building =
      start(with(build, {name(".cpp"), "-o", name(".o")}), name(".log"));
  bool correct = succeeds(checking);
  bool built = succeeds(building) &&
      succeeds(start(
          with(linker(), {name(".o"), hooks.string(), "-o", name(".so")}),
          name(".log")));
  if (!correct || !built) {
    fail_to_compile(read(name(correct ? ".log" : ".typed.log")));
  }
  auto library = kernel_cache() / (key + ".so");
  fs::rename(name(".so"), library);
  return library;
}

template <typename T>
T* symbol(void* library, const char* name) {
  return reinterpret_cast<T*>(dlsym(library, name));
}

} // namespace

bool has_kernel_compiler() {
  return !kCompiler.empty();
}

std::filesystem::path& kernel_cache() {
  static fs::path folder = kBuildCache;
  return folder;
}

Instance::Instance(
    const gpu::KernelSource& source,
    const std::vector<gpu::Constant>& constants,
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs)
    : text_(kernel_text(source, constants, inputs, outputs, false)) {
  library_ =
      compiled(kernel_text(source, constants, inputs, outputs, true), text_);
  void* library = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw std::runtime_error(dlerror());
  }
  run = symbol<void(void* const*, const Position&)>(library, "emulator_run");
  machine = symbol<Machine*>(library, "emulator_machine");
  threadgroup_bytes =
      *symbol<unsigned long>(library, "emulator_threadgroup_bytes");
}

std::string Instance::line(int number) const {
  std::istringstream text(text_);
  std::string line;
  for (int i = 0; i < number; ++i) {
    std::getline(text, line);
  }
  return line;
}

std::string Instance::line_at(Address site) const {
  Dl_info code;
  if (kAddr2line.empty() || dladdr(reinterpret_cast<void*>(site), &code) == 0) {
    return {};
  }
  // The address is that behind the call of the hook.
  auto offset = site - 1 - reinterpret_cast<Address>(code.dli_fbase);
  char digits[32];
  std::snprintf(digits, sizeof(digits), "%lx", offset);
  auto log = kernel_cache() / ("line." + std::to_string(getpid()));
  succeeds(start({kAddr2line, "-e", library_, digits}, log));
  auto answer = read(log);
  fs::remove(log);
  auto colon = answer.rfind(':');
  return colon == std::string::npos
      ? ""
      : line(std::atoi(answer.c_str() + colon + 1));
}

} // namespace nightingale::emulator
