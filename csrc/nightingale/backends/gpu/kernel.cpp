#include "nightingale/backends/gpu/kernel.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/launched_kernels.h"
#include "nightingale/backends/gpu/primitives.h"
#include "nightingale/backends/testing.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

std::atomic<long> launches{0}, source_bytes{0}, first_runs{0};

Arrays all_inputs(const Launch& launch) {
  Arrays inputs = launch.inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    // Metal passes these by reference, everything else as pointers.
    if (inputs[i].ndim() == 0) {
      throw Error(
          std::string(launch.kernel) + ": input " + std::to_string(i) +
          " has no dimensions; expected an array of one element");
    }
  }
  for (const auto& x : launch.state) {
    if (!is_device_array(x)) {
      throw Error(
          std::string(launch.kernel) + ": state of " +
          std::to_string(x.size()) + " elements; expected at least " +
          std::to_string(kLeastDeviceSize));
    }
    inputs.push_back(x);
  }
  return inputs;
}

// How an instance has been launched.
struct Accepted {
  int threads; // 0: it was refused
  long source_bytes;
};

// The group sizes that were accepted, by instance.
class Sizes {
 public:
  std::optional<Accepted> find(uint64_t instance) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto found = accepted_.find(instance);
    return found == accepted_.end() ? std::nullopt
                                    : std::optional(found->second);
  }
  void keep(uint64_t instance, Accepted accepted) {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted_[instance] = accepted;
  }
  void clear() {
    std::lock_guard<std::mutex> lock(mutex_);
    accepted_.clear();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<uint64_t, Accepted> accepted_;
};

Sizes& sizes() {
  static auto* sizes = new Sizes;
  return *sizes;
}

// The kernels that have been launched.
class Names {
 public:
  void add(const char* name) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) {
      names_.emplace_back(name);
    }
  }
  std::vector<std::string> all() {
    std::lock_guard<std::mutex> lock(mutex_);
    return names_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> names_;
};

Names& launched_names() {
  static auto* names = new Names;
  return *names;
}

Arrays run(const SizedLaunch& sized) {
  const auto& [instance, launch, given, threads, s] = sized;
  if (s.device == mx::Device::gpu) {
    return outputs_of(sized);
  }
  Arrays inputs = given;
  for (size_t i = 0; i < launch.inputs.size(); ++i) {
    inputs[i] = mx::contiguous(inputs[i], false, s);
  }
  auto outputs = outputs_of({instance, launch, inputs, threads, s});
  test_hooks::kernel_emulator()->built(inputs, outputs);
  return outputs;
}

[[noreturn]] void throw_refused(
    const Launch& launch,
    const std::string& reason = "") {
  throw Error(
      "this GPU cannot run the kernel " + std::string(launch.kernel) + reason);
}

// A GPU refuses a group size only when the launch is evaluated, before anything
// has run: so the first launch of an instance is evaluated at once.
Arrays first_run(SizedLaunch sized) {
  mx::eval(sized.inputs);
  std::string refusal = "no size is listed";
  auto try_run = [&]() -> std::optional<Arrays> {
    try {
      auto outputs = run(sized);
      mx::eval(outputs);
      Accepted accepted{sized.threads, source_bytes_of(sized.launch)};
      sizes().keep(sized.instance, accepted);
      source_bytes += accepted.source_bytes;
      return outputs;
    } catch (const std::invalid_argument& error) { // Metal
      refusal = error.what();
    } catch (const std::runtime_error& error) { // CUDA
      if (sized.stream.device == mx::Device::cpu) {
        throw; // a fault that the emulator has found
      }
      refusal = error.what();
    }
    return std::nullopt;
  };
  const auto& launch = sized.launch;
  size_t count = launch.best_size_only ? 1 : launch.threads.size();
  for (int threads : std::span(launch.threads).first(count)) {
    sized.threads = threads;
    provide_code(sized);
    if (auto outputs = try_run()) {
      return *outputs;
    }
    // Code from an earlier process may be damaged.
    if (remove_code(sized)) {
      if (auto outputs = try_run()) {
        return *outputs;
      }
    }
  }
  if (launch.best_size_only) {
    sizes().keep(sized.instance, {0, 0}); // not to be tried for every token
  }
  throw_refused(launch, ": " + refusal);
}

// MLX keeps up to 8 bytes in memory that the host accesses too, and on CUDA
// every group of a launch reads those over the bus. Larger results are in the
// GPU's own memory: so few numbers become four copies of them.
mx::array in_gpu_memory(const mx::array& values) {
  if (!mx::cu::is_available() || values.nbytes() > 8) {
    return values;
  }
  auto s = mx::default_stream(mx::Device::gpu);
  auto zeros =
      mx::zeros({4, static_cast<int>(values.size())}, values.dtype(), s);
  auto copies = mx::add(zeros, values, s);
  mx::async_eval(copies);
  return copies;
}

// Whether its tensor cores support the types of our tiles.
bool cuda_has_tiles() {
  constexpr size_t ampere = 8;
  return compute_capability().major >= ampere;
}

// Arrays by their values, enough for a few utterances.
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
    found = kept->emplace(values, in_gpu_memory(fresh)).first;
  }
  return found->second;
}

} // namespace

KernelNumbers numbers_of(
    const std::vector<Constant>& constants,
    const std::vector<mx::Dtype>& arrays) {
  KernelNumbers numbers;
  auto types = arrays;
  for (const auto& [name, value] : constants) {
    if (auto number = std::get_if<int>(&value)) {
      numbers.emplace_back(name, *number);
    } else if (auto flag = std::get_if<bool>(&value)) {
      numbers.emplace_back(name, *flag);
    } else {
      types.push_back(std::get<mx::Dtype>(value));
    }
  }
  auto add = [&](const char* name, mx::Dtype type) {
    bool has = std::find(types.begin(), types.end(), type) != types.end();
    numbers.emplace_back(name, has);
  };
  add("FLOAT32", mx::float32);
  add("BFLOAT16", mx::bfloat16);
  bool halves = std::any_of(arrays.begin(), arrays.end(), [](mx::Dtype type) {
    return type == mx::float16 || type == mx::bfloat16;
  });
  numbers.emplace_back("HALF_ARRAYS", halves);
  return numbers;
}

mx::array numbers(const std::vector<int>& values) {
  return kept_numbers(values);
}

mx::array numbers(const std::vector<float>& values) {
  return kept_numbers(values);
}

std::vector<mx::array> launch(const Launch& launch, mx::Stream s) {
  if (auto emulator = test_hooks::kernel_emulator()) {
    if (auto outputs = emulator->replacement(launch)) {
      return *outputs;
    }
  }
  auto inputs = all_inputs(launch);
  SizedLaunch sized{instance_of(launch).value(), launch, inputs, 0, s};
  ++launches;
  if (auto accepted = sizes().find(sized.instance)) {
    bool other = accepted->threads != launch.threads.front();
    if (accepted->threads == 0 || (launch.best_size_only && other)) {
      throw_refused(launch);
    }
    sized.threads = accepted->threads;
    source_bytes += accepted->source_bytes;
    return run(sized);
  }
  ++first_runs;
  launched_names().add(launch.kernel);
  return first_run(sized);
}

LaunchCount launch_count() {
  return {launches, source_bytes};
}

void count_launches(LaunchCount more) {
  launches += more.launches;
  source_bytes += more.source_bytes;
}

long first_launches() {
  return first_runs;
}

std::vector<std::string> launched_kernels() {
  return launched_names().all();
}

bool has_kernels(const mx::Stream& s) {
  return s.device == mx::Device::gpu ||
      test_hooks::kernel_emulator() != nullptr;
}

bool has_tiles(const mx::Stream& s) {
  static const bool on_gpu = cuda_has_tiles();
  auto emulator = test_hooks::kernel_emulator();
  return s.device == mx::Device::gpu ? on_gpu
                                     : emulator && emulator->has_tiles();
}

void forget_launches() {
  sizes().clear();
  forget_primitives();
}

} // namespace nightingale::gpu
