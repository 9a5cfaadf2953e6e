#include "nightingale/backends/gpu/primitives.h"

#include <mutex>
#include <string_view>
#include <unordered_map>

#include "mlx/allocator.h"
#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/fast_primitives.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/cuda_modules.h"
#include "nightingale/backends/gpu/fingerprint.h"
#include "nightingale/backends/gpu/include_files.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

Emulator* emulator = nullptr;

// MLX gives kernels const inputs: state comes in under another name, and its
// own is a pointer that may be written through.
std::string const_name(const std::string& state) {
  return state + "_const";
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

// As MLX names what it compiles for.
std::string cuda_architecture() {
  auto [major, minor] = compute_capability();
  return "sm_" + std::to_string(major) + std::to_string(minor) +
      (major >= 9 ? "a" : "");
}

struct CudaText {
  std::string body, header;
};

// MLX puts the text together and hashes it at every launch, 0.5 µs for each kB
// of it: so it gets the names of files that hold the text, the same in every
// process, for what was compiled of it is found again by that hash.
CudaText kept_in_files(const KernelSource& source) {
  static const auto words =
      parse_kernel(
          "cuda",
          std::string(embedded_text("cuda.h")) + "//: kernel",
          embedded_text)
          .header;
  // In the body `threadgroup` declares, in the header it qualifies pointers.
  auto header = words + source.header +
      "#undef threadgroup\n#define threadgroup __shared__\n";
  // MLX's names of compiled kernels do not tell what they are compiled for.
  auto name = source.name + "-" + cuda_architecture();
  auto keep = [&](const std::string& text) {
    return include_line(module_folder(), name, text);
  };
  return {keep(writable_state(source) + source.body), keep(header)};
}

mx::fast::CustomKernelFunction cuda_function(
    const KernelSource& source,
    const std::vector<std::string>& in) {
  auto text = kept_in_files(source);
  return mx::fast::cuda_kernel(
      source.name,
      in,
      source.outputs,
      text.body,
      text.header,
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
    return kName;
  }
  static constexpr const char* kName = "EmulatedLaunch";

 private:
  const KernelSource& source_;
  std::vector<Constant> constants_;
  std::array<int, 3> groups_;
  int threads_;
};

using Primitive = std::shared_ptr<mx::Primitive>;

// What runs a launch when it is evaluated.
Primitive make_primitive(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s) {
  if (s.device == mx::Device::cpu) {
    return std::make_shared<EmulatedLaunch>(s, launch, threads);
  }
  auto [shapes, dtypes] = described(launch.outputs);
  auto [x, y, z] = launch.groups;
  auto outputs = compiled(launch).run(
      inputs,
      shapes,
      dtypes,
      {x * threads, y, z},
      {threads, 1, 1},
      constants_with(launch, threads),
      std::nullopt,
      false,
      s);
  return outputs[0].primitive_ptr();
}

// As MLX names what runs a kernel that is not its own.
constexpr const char* kCustomKernel = "CustomKernel";

// What runs launches that differ in nothing but their arrays, made once: MLX
// puts the text of a kernel together for every one that it makes.
class Primitives {
 public:
  Primitive find(
      uint64_t instance,
      const Launch& launch,
      const Arrays& inputs,
      int threads,
      mx::Stream s) {
    auto key = key_of(instance, launch, inputs, threads, s);
    std::lock_guard<std::mutex> lock(mutex_);
    if (made_.size() >= kMost) {
      made_.clear();
    }
    auto& primitive = made_[key];
    if (!primitive) {
      primitive = make_primitive(launch, inputs, threads, s);
    }
    return primitive;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    made_.clear();
  }

 private:
  static constexpr size_t kMost = 8192; // every new length makes some

  static uint64_t key_of(
      uint64_t instance,
      const Launch& launch,
      const Arrays& inputs,
      int threads,
      mx::Stream s) {
    Fingerprint key;
    key.add(instance);
    key.add(static_cast<uint64_t>(threads));
    key.add(static_cast<uint64_t>(s.index));
    for (int size : launch.groups) {
      key.add(static_cast<uint64_t>(size));
    }
    for (const auto& x : inputs) {
      // Metal has small ones in other memory.
      key.add(static_cast<uint64_t>(x.size() < 8));
    }
    return key.value();
  }

  std::mutex mutex_;
  std::unordered_map<uint64_t, Primitive> made_;
};

Primitives& primitives() {
  static auto* primitives = new Primitives;
  return *primitives;
}

// What MLX makes of a kernel's text, and so what it looks for. Nothing where it
// does not run on CUDA.
std::optional<GeneratedKernel> generated(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s) {
  if (!mx::cu::is_available() || s.device != mx::Device::gpu) {
    return std::nullopt;
  }
  auto primitive = make_primitive(launch, inputs, threads, s);
  if (std::string_view(primitive->name()) != kCustomKernel) {
    return std::nullopt;
  }
  // MLX keeps the type's description, which a dynamic cast needs, to itself.
  auto state = static_cast<const mx::fast::CustomKernel&>(*primitive).state();
  return GeneratedKernel{std::get<0>(state), std::get<1>(state)};
}

} // namespace

Arrays outputs_of(
    uint64_t instance,
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s) {
  auto [shapes, dtypes] = described(launch.outputs);
  auto primitive = primitives().find(instance, launch, inputs, threads, s);
  return mx::array::make_arrays(shapes, dtypes, primitive, inputs);
}

bool is_launch(const mx::Primitive& primitive) {
  std::string_view name = primitive.name();
  return name == kCustomKernel || name == EmulatedLaunch::kName;
}

void provide_code(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s) {
  if (auto kernel = generated(launch, inputs, threads, s)) {
    kept_in_files(compiled(launch).source); // they may be gone after some days
    provide_module(*kernel, cuda_architecture());
  }
}

bool withdraw_code(
    const Launch& launch,
    const Arrays& inputs,
    int threads,
    mx::Stream s) {
  auto kernel = generated(launch, inputs, threads, s);
  return kernel && remove_module(*kernel);
}

ComputeCapability compute_capability() {
  if (!mx::cu::is_available()) {
    return {};
  }
  auto info = mx::device_info(mx::Device::gpu);
  auto number = [&](const char* name) -> size_t {
    auto found = info.find(name);
    return found == info.end() ? 0 : std::get<size_t>(found->second);
  };
  return {
      number("compute_capability_major"), number("compute_capability_minor")};
}

void set_emulator(Emulator* with) {
  emulator = with;
  primitives().clear();
}

Emulator* current_emulator() {
  return emulator;
}

} // namespace nightingale::gpu
