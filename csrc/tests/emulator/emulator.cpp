#include "emulator/emulator.h"

#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "emulator/kernel_text.h"
#include "emulator/source_check.h"

namespace nightingale::emulator {

namespace {

constexpr int kLanes = 32;

std::string described(const Fault& fault, const Instance& instance) {
  std::ostringstream text;
  text << fault.what;
  if (fault.thread >= 0) {
    auto [x, y, z] = fault.group;
    text << "; group (" << x << ", " << y << ", " << z << "), thread "
         << fault.thread;
  }
  auto line = fault.site != 0 ? instance.line_at(fault.site)
                              : instance.line(fault.line);
  if (!line.empty()) {
    text << ", at `" << line << "`";
  }
  return text.str();
}

// Where `x` begins within its buffer: Metal's buffers begin at a page.
size_t offset_of(const mx::array& x) {
  auto* buffer =
      static_cast<const char*>(const_cast<mx::array&>(x).buffer().raw_ptr());
  return x.data<char>() - buffer;
}

// parse_kernel() asks a plain function for the files it includes.
std::filesystem::path& texts_folder() {
  static std::filesystem::path folder;
  return folder;
}

std::string_view text_in_folder(std::string_view name) {
  static std::map<std::filesystem::path, std::string> texts;
  auto path = texts_folder() / name;
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    return {};
  }
  std::ostringstream text;
  text << in.rdbuf();
  return texts[path] = text.str();
}

gpu::KernelNumbers numbers_of(const test_hooks::KernelRun& run) {
  std::vector<mx::Dtype> types;
  for (const auto& x : run.inputs) {
    types.push_back(x.dtype());
  }
  for (const auto& x : run.outputs) {
    types.push_back(x.dtype());
  }
  return gpu::numbers_of(run.constants, types);
}

bool overlap(const mx::array& a, const mx::array& b) {
  auto* begin_a = a.data<char>();
  auto* begin_b = b.data<char>();
  return begin_a < begin_b + b.nbytes() && begin_b < begin_a + a.nbytes();
}

} // namespace

std::set<std::string> MetalEmulator::take_launched() {
  return std::exchange(launched_, {});
}

void MetalEmulator::use_sources(const std::filesystem::path& folder) {
  folder_ = folder;
  replacements_.clear();
}

const gpu::KernelSource& MetalEmulator::replaced(
    const gpu::KernelSource& source,
    const gpu::KernelNumbers& numbers) {
  if (!folder_) {
    return source;
  }
  auto key = source.name;
  for (const auto& name : source.absent) {
    key += " " + name;
  }
  for (const auto& [name, value] : numbers) {
    key += " " + name + "=" + std::to_string(value);
  }
  auto found = replacements_.find(key);
  if (found == replacements_.end()) {
    texts_folder() = *folder_;
    auto text = text_in_folder(source.name + ".metal");
    if (text.data() == nullptr) {
      return source;
    }
    found =
        replacements_
            .emplace(
                key,
                gpu::specialized(
                    gpu::without(
                        gpu::parse_kernel(source.name, text, text_in_folder),
                        source.absent),
                    numbers))
            .first;
  }
  return found->second;
}

void MetalEmulator::run(const test_hooks::KernelRun& asked) {
  const auto& [embedded, constants, inputs, outputs, groups, threads] = asked;
  std::lock_guard<std::mutex> lock(mutex_);
  const auto& source = replaced(embedded, numbers_of(asked));
  launched_.insert(source.name);
  if (threads > limits.threads) {
    throw std::invalid_argument(
        source.name + ": a group of " + std::to_string(threads) +
        " threads is more than " + std::to_string(limits.threads));
  }
  if (threads <= 0 || threads % kLanes != 0) {
    throw std::runtime_error(
        source.name + ": " + std::to_string(threads) +
        " threads are not whole SIMD groups");
  }
  try {
    auto& instance = instances_[kernel_key(source, constants, inputs, outputs)];
    if (instance == nullptr) {
      check_source(source, constants);
      instance = std::make_unique<Instance>(source, constants, inputs, outputs);
      if (on_compile) {
        on_compile(asked);
      }
    }
    run(*instance, {source, constants, inputs, outputs, groups, threads});
  } catch (const std::invalid_argument&) {
    throw;
  } catch (const std::exception& error) {
    throw std::runtime_error(source.name + ": " + error.what());
  }
}

void MetalEmulator::run(
    const Instance& instance,
    const test_hooks::KernelRun& asked) {
  const auto& [source, constants, inputs, outputs, groups, threads] = asked;
  if (instance.threadgroup_bytes > limits.threadgroup_bytes) {
    throw std::invalid_argument(
        source.name + ": " + std::to_string(instance.threadgroup_bytes) +
        " bytes of threadgroup memory are more than " +
        std::to_string(limits.threadgroup_bytes));
  }
  auto& memory = groups_.memory();
  memory.begin_launch(instance.threadgroup_bytes);
  std::vector<void*> buffers;
  size_t first_state = source.inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& x = inputs[i];
    bool state = i >= first_state;
    const auto& name = state ? source.state[i - first_state] : source.inputs[i];
    for (size_t j = 0; state && j < i; ++j) {
      if (overlap(x, inputs[j])) {
        throw std::runtime_error(
            "aliased: " + name + " is written and is also " +
            (j < first_state ? source.inputs[j]
                             : source.state[j - first_state]));
      }
    }
    char* place = memory.add(
        state ? Use::state : Use::input,
        name,
        x.nbytes(),
        x.itemsize(),
        offset_of(x));
    std::memcpy(place, x.data<char>(), x.nbytes());
    buffers.push_back(place);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    buffers.push_back(memory.add(
        Use::output,
        source.outputs[i],
        outputs[i].nbytes(),
        outputs[i].itemsize(),
        0));
  }
  auto index = [](int n) { return static_cast<unsigned>(n); };
  try {
    groups_.run(
        instance.run,
        *instance.machine,
        buffers,
        {index(groups[0]), index(groups[1]), index(groups[2])},
        threads);
  } catch (const Fault& fault) {
    throw std::runtime_error(described(fault, instance));
  }
  for (size_t i = first_state; i < inputs.size(); ++i) {
    auto& state = const_cast<mx::array&>(inputs[i]);
    std::memcpy(state.data<char>(), buffers[i], state.nbytes());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::memcpy(
        outputs[i].data<char>(),
        buffers[inputs.size() + i],
        outputs[i].nbytes());
  }
}

} // namespace nightingale::emulator
