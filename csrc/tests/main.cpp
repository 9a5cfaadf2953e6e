#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "backends/gpu/kernel_stream.h"
#include "emulator/instance.h"
#include "kernel_texts/write_texts.h"

// Beside doctest's options, for mutate_kernels.py:
//   --metal=FOLDER     takes the kernels from there
//   --cache=FOLDER     keeps newly compiled kernels there
//   --threads=NUMBER   the largest group that the emulated GPU takes
//   --launched=FILE    writes a line for each kernel that a test case runs
// and for tools/kernel_texts.py:
//   --texts=FOLDER     runs no test; writes what MLX compiles on Metal there
//                      for the models
//   --test-texts=FOLDER  writes what MLX compiles on Metal there for the tests

namespace {

using namespace nightingale;

std::optional<std::string> option(int argc, char** argv, std::string name) {
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument.starts_with("--" + name + "=")) {
      return std::string(argument.substr(name.size() + 3));
    }
  }
  return std::nullopt;
}

std::ofstream launched;

struct LaunchListener : doctest::IReporter {
  explicit LaunchListener(const doctest::ContextOptions&) {}

  void test_case_start(const doctest::TestCaseData& test) override {
    test_ = &test;
  }
  void test_case_end(const doctest::CurrentTestCaseStats& stats) override {
    if (launched.is_open()) {
      for (const auto& kernel : testing::metal_emulator().take_launched()) {
        launched << kernel << '\t' << test_->m_name << '\t' << stats.seconds
                 << '\t' << test_->m_file.c_str() << '\n';
      }
    }
  }
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}

 private:
  const doctest::TestCaseData* test_ = nullptr;
};

REGISTER_LISTENER("launches", 1, LaunchListener);

} // namespace

int main(int argc, char** argv) {
  if (auto folder = option(argc, argv, "metal")) {
    testing::metal_emulator().use_sources(*folder);
  }
  if (auto folder = option(argc, argv, "cache")) {
    emulator::kernel_cache() = *folder;
  }
  if (auto file = option(argc, argv, "launched")) {
    launched.open(*file);
  }
  if (auto threads = option(argc, argv, "threads")) {
    testing::metal_emulator().limits.threads = std::stoi(*threads);
  }
  if (auto folder = option(argc, argv, "texts")) {
    testing::write_kernel_texts(*folder);
    return 0;
  }
  if (auto folder = option(argc, argv, "test-texts")) {
    testing::metal_emulator().on_compile = [folder](const auto& run) {
      testing::write_kernel_text(*folder, run);
    };
  }
  doctest::Context context(argc, argv);
  if (!testing::emulated() && !emulator::has_kernel_compiler()) {
    // Kernels are tested on the GPU; the emulator itself cannot be.
    context.addFilter("source-file-exclude", "*/emulator/*");
  }
  return context.run();
}
