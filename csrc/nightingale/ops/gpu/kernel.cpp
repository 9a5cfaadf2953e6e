#include "nightingale/ops/gpu/kernel.h"

#include <atomic>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "mlx/allocator.h"
#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/ops/gpu/cuda_modules.h"
#include "nightingale/ops/gpu/include_files.h"

namespace nightingale::gpu {

namespace {

using Arrays = std::vector<mx::array>;

// MLX hands arrays below this size to Metal as `constant`, which nothing can
// make writable.
constexpr int kLeastState = 8;

std::atomic<long> launches{0};
Emulator* emulator = nullptr;

// MLX gives kernels const inputs: state comes in under another name, and its
// own is a pointer that may be written through.
std::string const_name(const std::string& state) {
  return state + "_const";
}

// What a launch asks for, told apart by number: taken at every launch, so
// without making a string.
class Fingerprint {
 public:
  void add(uint64_t value) {
    hash_ = (hash_ ^ value) * 1099511628211ull; // FNV-1a
  }
  void add(const char* text) {
    for (; *text; ++text) {
      add(static_cast<uint64_t>(*text));
    }
    add(uint64_t(256));
  }
  void add(const mx::fast::TemplateArg& value) {
    if (auto type = std::get_if<mx::Dtype>(&value)) {
      add(static_cast<uint64_t>(type->val()));
    } else if (auto number = std::get_if<int>(&value)) {
      add(static_cast<uint64_t>(*number));
    } else {
      add(static_cast<uint64_t>(std::get<bool>(value)));
    }
  }
  uint64_t value() const {
    return hash_;
  }

 private:
  uint64_t hash_ = 14695981039346656037ull;
};

// The kernel and its inputs and outputs.
Fingerprint text_of(const Launch& launch) {
  Fingerprint text;
  text.add(launch.kernel);
  for (const auto& name : launch.absent) {
    text.add(name.c_str());
  }
  return text;
}

// And what it is compiled for: what decides which sizes are accepted.
Fingerprint instance_of(const Launch& launch) {
  auto instance = text_of(launch);
  for (const auto& constant : launch.constants) {
    instance.add(constant.second);
  }
  return instance;
}

struct Compiled {
  KernelSource source;
  mx::fast::CustomKernelFunction run;
};

// Pointers through which state may be written, under its own names.
std::string writable_state(const KernelSource& source) {
  std::string lines;
  for (const auto& name : source.state) {
    lines += "auto " + name + " = writable(" + const_name(name) + ");\n";
  }
  return lines;
}

mx::fast::CustomKernelFunction metal_function(
    const KernelSource& source,
    const std::vector<std::string>& in) {
  return mx::fast::metal_kernel(
      source.name,
      in,
      source.outputs,
      writable_state(source) + source.body,
      std::string(embedded_text("metal.h")) + source.header,
      source.state.empty()); // state is not copied
}

// MLX puts the text together and hashes it at every launch, 0.5 µs for each kB
// of it: so it gets the names of files that hold the text, the same in every
// process, for what was compiled of it is found again by that hash.
mx::fast::CustomKernelFunction cuda_function(
    const KernelSource& source,
    const std::vector<std::string>& in) {
  static const auto words =
      parse_kernel(
          "cuda",
          std::string(embedded_text("cuda.h")) + "//: kernel",
          embedded_text)
          .header;
  // In the body `threadgroup` declares, in the header it qualifies pointers.
  auto header = words + source.header +
      "#undef threadgroup\n#define threadgroup __shared__\n";
  auto keep = [&](const std::string& text) {
    return include_line(module_folder(), source.name, text);
  };
  return mx::fast::cuda_kernel(
      source.name,
      in,
      source.outputs,
      keep(writable_state(source) + source.body),
      keep(header),
      source.state.empty());
}

const Compiled& compiled(const Launch& launch) {
  static std::mutex mutex;
  static auto* kernels = new std::unordered_map<uint64_t, Compiled>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& kernel = (*kernels)[text_of(launch).value()];
  if (kernel.source.name.empty()) {
    kernel.source = without(kernel_source(launch.kernel), launch.absent);
    auto inputs = kernel.source.inputs;
    for (const auto& name : kernel.source.state) {
      inputs.push_back(const_name(name));
    }
    if (mx::metal::is_available()) {
      kernel.run = metal_function(kernel.source, inputs);
    } else if (mx::cu::is_available()) {
      kernel.run = cuda_function(kernel.source, inputs);
    }
  }
  return kernel;
}

std::vector<Constant> constants_with(const Launch& launch, int threads) {
  auto constants = launch.constants;
  constants.emplace_back("THREADS", threads);
  return constants;
}

Arrays all_inputs(const Launch& launch) {
  Arrays inputs = launch.inputs;
  for (const auto& x : launch.state) {
    if (x.size() < kLeastState) {
      throw Error(
          std::string(launch.kernel) + ": state of " +
          std::to_string(x.size()) + " elements; at least " +
          std::to_string(kLeastState) + " are needed");
    }
    inputs.push_back(x);
  }
  return inputs;
}

std::pair<std::vector<mx::Shape>, std::vector<mx::Dtype>> described(
    const std::vector<KernelOutput>& outputs) {
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  for (const auto& out : outputs) {
    shapes.push_back(out.shape);
    dtypes.push_back(out.dtype);
  }
  return {shapes, dtypes};
}

Arrays run_on_gpu(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s,
    bool verbose = false) {
  auto [shapes, dtypes] = described(launch.outputs);
  auto [x, y, z] = launch.groups;
  return compiled(launch).run(
      inputs,
      shapes,
      dtypes,
      {x * threads, y, z},
      {threads, 1, 1},
      constants_with(launch, threads),
      std::nullopt,
      verbose,
      s);
}

// What `work` prints, which nobody sees.
template <typename Work>
std::string printed_by(const Work& work) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::ostringstream text;
  auto* before = std::cout.rdbuf(text.rdbuf());
  try {
    work();
  } catch (...) {
    std::cout.rdbuf(before);
    throw;
  }
  std::cout.rdbuf(before);
  return text.str();
}

// As MLX names what it compiles for.
std::string cuda_architecture() {
  const auto& info = mx::device_info(mx::Device::gpu);
  auto number = [&](const char* name) {
    auto found = info.find(name);
    return found == info.end() ? 0 : std::get<size_t>(found->second);
  };
  auto major = number("compute_capability_major");
  return "sm_" + std::to_string(major) +
      std::to_string(number("compute_capability_minor")) +
      (major >= 9 ? "a" : "");
}

// On CUDA, the machine code of the launch, for MLX to find. It tells what it
// makes of a kernel's text, and so what it looks for, only by printing it.
void provide_code(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s) {
  static const bool on_cuda = mx::cu::is_available();
  if (!on_cuda || s.device != mx::Device::gpu) {
    return;
  }
  auto text = printed_by([&] { run_on_gpu(launch, inputs, threads, s, true); });
  if (auto kernel = parse_generated(text)) {
    provide_module(*kernel, cuda_architecture());
  }
}

// A launch in the emulator: like one on a GPU it runs when it is evaluated, and
// not at all where nothing asks for its outputs.
class EmulatedLaunch : public mx::Primitive {
 public:
  EmulatedLaunch(mx::Stream s, const Launch& launch, int threads)
      : Primitive(s),
        source_(compiled(launch).source),
        constants_(constants_with(launch, threads)),
        groups_(launch.groups),
        threads_(threads) {}

  void eval_cpu(const Arrays& inputs, Arrays& outputs) override {
    mx::synchronize(stream()); // MLX fills the inputs on a thread of its own
    for (auto& out : outputs) {
      out.set_data(mx::allocator::malloc(out.nbytes()));
    }
    emulator->run(source_, constants_, inputs, outputs, groups_, threads_);
  }
  void eval_gpu(const Arrays&, Arrays&) override {
    throw Error("the emulator runs on the CPU");
  }
  const char* name() const override {
    return "EmulatedLaunch";
  }

 private:
  const KernelSource& source_;
  std::vector<Constant> constants_;
  std::array<int, 3> groups_;
  int threads_;
};

Arrays emulate(const Launch& launch, Arrays inputs, int threads, mx::Stream s) {
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    inputs[i] = mx::contiguous(inputs[i], false, s);
  }
  auto [shapes, dtypes] = described(launch.outputs);
  return mx::array::make_arrays(
      shapes,
      dtypes,
      std::make_shared<EmulatedLaunch>(s, launch, threads),
      inputs);
}

// The sizes that were accepted, by instance.
class Sizes {
 public:
  std::optional<int> find(uint64_t instance) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = accepted_.find(instance);
    return found == accepted_.end() ? std::nullopt
                                    : std::optional<int>(found->second);
  }
  void keep(uint64_t instance, int threads) {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted_[instance] = threads;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted_.clear();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, int> accepted_;
};

Sizes& sizes() {
  static auto* sizes = new Sizes;
  return *sizes;
}

Arrays
run(const Launch& launch, const Arrays& inputs, int threads, mx::Stream s) {
  return s.device == mx::Device::cpu ? emulate(launch, inputs, threads, s)
                                     : run_on_gpu(launch, inputs, threads, s);
}

// A GPU refuses a size only when the launch is evaluated, before anything has
// run: so the first launch of an instance is evaluated at once.
Arrays first_run(
    const Launch& launch,
    const Arrays& inputs,
    uint64_t instance,
    mx::Stream s) {
  mx::eval(inputs);
  std::string refusal = "no size is listed";
  for (int threads : launch.threads) {
    try {
      provide_code(launch, inputs, threads, s);
      auto outputs = run(launch, inputs, threads, s);
      mx::eval(outputs);
      sizes().keep(instance, threads);
      return outputs;
    } catch (const std::invalid_argument& error) { // Metal
      refusal = error.what();
    } catch (const std::runtime_error& error) { // CUDA
      if (s.device == mx::Device::cpu) {
        throw; // a fault that the emulator has found
      }
      refusal = error.what();
    }
  }
  throw Error(
      "this GPU cannot run the kernel " + std::string(launch.kernel) + ": " +
      refusal);
}

mx::array near_the_gpu(const mx::array& values) {
  if (!mx::cu::is_available() || values.nbytes() > 8) {
    return values;
  }
  auto near = copies_near_gpu(values, mx::default_stream(mx::Device::gpu));
  mx::async_eval(near);
  return near;
}

// The first generation whose tensor cores multiply what tiles are.
bool cuda_has_tiles() {
  constexpr size_t ampere = 8;
  if (!mx::cu::is_available()) {
    return false;
  }
  const auto& info = mx::device_info(mx::Device::gpu);
  auto major = info.find("compute_capability_major");
  return major != info.end() && std::get<size_t>(major->second) >= ampere;
}

// Arrays by their values, as many as a few utterances need.
template <typename T>
mx::array kept_numbers(const std::vector<T>& values) {
  constexpr size_t most = 1024;
  static std::mutex mutex;
  static auto* kept = new std::map<std::vector<T>, mx::array>;
  std::lock_guard<std::mutex> lock(mutex);
  if (kept->size() >= most) {
    kept->clear();
  }
  auto found = kept->find(values);
  if (found == kept->end()) {
    mx::array fresh(values.begin(), {static_cast<int>(values.size())});
    found = kept->emplace(values, near_the_gpu(fresh)).first;
  }
  return found->second;
}

} // namespace

mx::array copies_near_gpu(const mx::array& few, mx::Stream s) {
  auto zeros = mx::zeros({4, static_cast<int>(few.size())}, few.dtype(), s);
  return mx::add(zeros, few, s);
}

mx::array numbers(const std::vector<int>& values) {
  return kept_numbers(values);
}

mx::array numbers(const std::vector<float>& values) {
  return kept_numbers(values);
}

std::vector<mx::array> launch(const Launch& launch, mx::Stream s) {
  auto inputs = all_inputs(launch);
  auto instance = instance_of(launch).value();
  ++launches;
  if (auto threads = sizes().find(instance)) {
    return run(launch, inputs, *threads, s);
  }
  return first_run(launch, inputs, instance, s);
}

long kernel_launches() {
  return launches;
}

bool has_kernels(const mx::Stream& s) {
  return s.device == mx::Device::gpu || emulator != nullptr;
}

bool has_tiles(const mx::Stream& s) {
  static const bool on_gpu = cuda_has_tiles();
  return s.device == mx::Device::gpu ? on_gpu
                                     : emulator && emulator->has_tiles();
}

void emulate_kernels(Emulator* with) {
  emulator = with;
  sizes().clear();
}

} // namespace nightingale::gpu
