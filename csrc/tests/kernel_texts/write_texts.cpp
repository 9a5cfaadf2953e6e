#include "kernel_texts/write_texts.h"

#include <algorithm>
#include <fstream>
#include <stdexcept>

#include "kernel_texts/generated_text.h"
#include "kernel_texts/models.h"
#include "kernel_texts/recorder.h"

namespace nightingale::testing {

namespace {

namespace fs = std::filesystem;
using Texts = std::map<std::string, std::string>;

Texts texts_of(bool tiles, void (*speak)()) {
  LaunchRecorder recorder(tiles);
  test_hooks::emulate_kernels(&recorder);
  test_hooks::treat_cpu_as_gpu(true);
  speak();
  test_hooks::treat_cpu_as_gpu(false);
  test_hooks::emulate_kernels(nullptr);
  return recorder.texts();
}

void write(
    const fs::path& folder,
    const std::string& name,
    const std::string& text) {
  fs::create_directories(folder);
  std::ofstream file(folder / (name + ".metal"), std::ios::binary);
  if (!(file << text).flush()) {
    throw std::runtime_error("cannot write to " + folder.string());
  }
}

void write(const fs::path& folder, const Texts& texts, const Texts& known) {
  for (const auto& [name, text] : texts) {
    if (!known.contains(name)) {
      write(folder, name, text);
    }
  }
}

} // namespace

void write_kernel_texts(const fs::path& folder) {
  auto models = texts_of(false, speak_with_every_model);
  write(folder, models, {});
  write(folder / "tiles", texts_of(true, speak_with_tiles), models);
}

void write_kernel_text(
    const fs::path& folder,
    const test_hooks::KernelRun& run) {
  const auto& kernels = gpu::kernel_sources();
  bool ours = std::any_of(kernels.begin(), kernels.end(), [&](const auto& one) {
    return one.name == run.source.name;
  });
  if (ours) {
    auto [name, text] = generated_text(run);
    write(folder, name, text);
  }
}

} // namespace nightingale::testing
