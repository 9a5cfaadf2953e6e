#include "nightingale/backends/gpu/primitives.h"

#include <mutex>
#include <unordered_map>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/primitives.h"
#include "nightingale/backends/gpu/metal_text.h"
#include "nightingale/backends/testing.h"
#include "nightingale/mlx_internals/ptx_cache.h"

namespace nightingale::gpu {

namespace {

struct Compiled {
  KernelSource source;
  mx::fast::CustomKernelFunction run;
  long source_bytes = 0;
};

std::vector<std::string> input_names(const KernelSource& source) {
  auto names = source.inputs;
  for (const auto& name : source.state) {
    names.push_back(state_input(name));
  }
  return names;
}

// As MLX names what it compiles for.
std::string cuda_architecture() {
  auto [major, minor] = compute_capability();
  return "sm_" + std::to_string(major) + std::to_string(minor) +
      (major >= 9 ? "a" : "");
}

// MLX hashes the text at every launch, 0.5 µs for each kB of it: so it gets
// #include lines of files that hold the text. They are the same in every
// process, because the compiled kernel is found by that hash.
KernelText text_in_files(const KernelSource& source) {
  static const auto words = embedded_header("cuda.h");
  // In the body `threadgroup` declares, in the header it qualifies pointers.
  auto header = words + source.header +
      "#undef threadgroup\n#define threadgroup __shared__\n";
  // MLX's names of compiled kernels do not contain the architecture.
  auto name = source.name + "-" + cuda_architecture();
  auto keep = [&](const std::string& text) {
    return mlx_internals::include_line(
        mlx_internals::module_folder(), name, text);
  };
  return {keep(header), keep(writable_state(source) + source.body)};
}

Compiled make_compiled(const Launch& launch) {
  auto source = source_of(launch);
  bool cuda = mx::cu::is_available();
  auto text = cuda ? text_in_files(source) : metal_text(source);
  Compiled kernel{source, {}, long(text.header.size() + text.body.size())};
  if (mx::metal::is_available()) {
    kernel.run = metal_kernel(source, text);
  } else if (cuda) {
    kernel.run = mx::fast::cuda_kernel(
        source.name,
        input_names(source),
        source.outputs,
        text.body,
        text.header,
        source.state.empty()); // state is not copied
  }
  return kernel;
}

const Compiled& compiled(const Launch& launch) {
  static std::mutex mutex;
  static auto* kernels = new std::unordered_map<uint64_t, Compiled>;
  std::lock_guard<std::mutex> lock(mutex);
  auto& kernel = (*kernels)[instance_of(launch).value()];
  if (kernel.source.name.empty()) {
    kernel = make_compiled(launch);
  }
  return kernel;
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

using Primitive = std::shared_ptr<mx::Primitive>;

Primitive make_primitive(const SizedLaunch& sized) {
  const auto& [instance, launch, inputs, threads, s] = sized;
  if (s.device == mx::Device::cpu) {
    const auto& source = compiled(launch).source;
    return test_hooks::emulated_launch(source, launch, threads, s);
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

class Primitives {
 public:
  Primitive find(const SizedLaunch& sized) {
    auto key = key_of(sized);
    std::lock_guard<std::mutex> lock(mutex_);
    if (made_.size() >= kMost) {
      made_.clear();
    }
    auto& primitive = made_[key];
    if (!primitive) {
      primitive = make_primitive(sized);
    }
    return primitive;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    made_.clear();
  }

 private:
  static constexpr size_t kMost = 8192; // every new length makes some

  static uint64_t key_of(const SizedLaunch& sized) {
    Fingerprint key;
    key.add(sized.instance);
    key.add(static_cast<uint64_t>(sized.threads));
    key.add(static_cast<uint64_t>(sized.stream.index));
    for (int size : sized.launch.groups) {
      key.add(static_cast<uint64_t>(size));
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

// What MLX will compile for the launch, and therefore look for. Nothing if it
// does not run on CUDA.
std::optional<mlx_internals::GeneratedKernel> generated(
    const SizedLaunch& sized) {
  if (!mx::cu::is_available() || sized.stream.device != mx::Device::gpu) {
    return std::nullopt;
  }
  return mlx_internals::generated_kernel(*make_primitive(sized));
}

} // namespace

KernelSource source_of(const Launch& launch) {
  std::vector<mx::Dtype> types;
  for (const auto* arrays : {&launch.inputs, &launch.state}) {
    for (const auto& x : *arrays) {
      types.push_back(x.dtype());
    }
  }
  for (const auto& out : launch.outputs) {
    types.push_back(out.dtype);
  }
  auto source = specialized(
      without(kernel_source(launch.kernel), launch.absent),
      numbers_of(launch.constants, types));
  source.header = without_unused(source.header, source.body);
  return source;
}

long source_bytes_of(const Launch& launch) {
  return compiled(launch).source_bytes;
}

std::vector<Constant> constants_with(const Launch& launch, int threads) {
  auto constants = launch.constants;
  constants.emplace_back("THREADS", threads);
  return constants;
}

Arrays outputs_of(const SizedLaunch& sized) {
  auto [shapes, dtypes] = described(sized.launch.outputs);
  auto primitive = primitives().find(sized);
  return mx::array::make_arrays(shapes, dtypes, primitive, sized.inputs);
}

bool is_launch(const mx::Primitive& primitive) {
  return mlx_internals::is_custom_kernel(primitive) ||
      test_hooks::is_emulated_launch(primitive);
}

void provide_code(const SizedLaunch& sized) {
  if (auto kernel = generated(sized)) {
    // Something may have removed the files since they were written.
    text_in_files(compiled(sized.launch).source);
    mlx_internals::provide_module(*kernel, cuda_architecture());
  }
}

bool remove_code(const SizedLaunch& sized) {
  auto kernel = generated(sized);
  return kernel && mlx_internals::remove_module(*kernel);
}

mx::fast::CustomKernelFunction metal_kernel(
    const KernelSource& source,
    const KernelText& text) {
  return mx::fast::metal_kernel(
      source.name,
      input_names(source),
      source.outputs,
      text.body,
      text.header,
      source.state.empty()); // state is not copied
}

void forget_primitives() {
  primitives().clear();
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

} // namespace nightingale::gpu
