#include "nightingale/backends/gpu/kernel.h"

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "mlx/backend/cuda/cuda.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/fingerprint.h"
#include "nightingale/backends/gpu/primitives.h"
#include "nightingale/error.h"

namespace nightingale::gpu {

namespace {

// MLX hands arrays below this size to Metal as `constant`, which nothing can
// make writable.
constexpr int kLeastState = 8;

std::atomic<long> launches{0}, first_runs{0};

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

Arrays run(
    uint64_t instance,
    const Launch& launch,
    Arrays inputs,
    int threads,
    mx::Stream s) {
  if (s.device == mx::Device::cpu) {
    for (size_t i = 0; i < launch.inputs.size(); ++i) {
      inputs[i] = mx::contiguous(inputs[i], false, s);
    }
  }
  return outputs_of(instance, launch, inputs, threads, s);
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
  auto runs_with = [&](int threads) -> std::optional<Arrays> {
    try {
      auto outputs = run(instance, launch, inputs, threads, s);
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
    return std::nullopt;
  };
  for (int threads : launch.threads) {
    provide_code(launch, inputs, threads, s);
    if (auto outputs = runs_with(threads)) {
      return *outputs;
    }
    // Code from an earlier process may be damaged.
    if (withdraw_code(launch, inputs, threads, s)) {
      if (auto outputs = runs_with(threads)) {
        return *outputs;
      }
    }
  }
  throw Error(
      "this GPU cannot run the kernel " + std::string(launch.kernel) + ": " +
      refusal);
}

// MLX keeps 8 bytes and less where the host reaches them too, and on CUDA every
// group of a launch reads those over the bus; a sum of more bytes lies in the
// GPU's own memory. So few numbers become four copies of them.
mx::array near_the_gpu(const mx::array& values) {
  if (!mx::cu::is_available() || values.nbytes() > 8) {
    return values;
  }
  auto s = mx::default_stream(mx::Device::gpu);
  auto zeros =
      mx::zeros({4, static_cast<int>(values.size())}, values.dtype(), s);
  auto near = mx::add(zeros, values, s);
  mx::async_eval(near);
  return near;
}

// Whether its tensor cores multiply what tiles are.
bool cuda_has_tiles() {
  constexpr size_t ampere = 8;
  return compute_capability().major >= ampere;
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
    return run(instance, launch, std::move(inputs), *threads, s);
  }
  ++first_runs;
  return first_run(launch, inputs, instance, s);
}

long kernel_launches() {
  return launches;
}

void count_launches(long more) {
  launches += more;
}

long first_launches() {
  return first_runs;
}

bool has_kernels(const mx::Stream& s) {
  return s.device == mx::Device::gpu || current_emulator() != nullptr;
}

bool has_tiles(const mx::Stream& s) {
  static const bool on_gpu = cuda_has_tiles();
  auto emulator = current_emulator();
  return s.device == mx::Device::gpu ? on_gpu
                                     : emulator && emulator->has_tiles();
}

void emulate_kernels(Emulator* with) {
  set_emulator(with);
  sizes().clear();
}

} // namespace nightingale::gpu
