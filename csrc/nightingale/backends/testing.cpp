#include "nightingale/backends/testing.h"

#include <string_view>

#include "mlx/allocator.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/primitives.h"
#include "nightingale/error.h"

namespace nightingale::test_hooks {

namespace {

using gpu::Arrays;

KernelEmulator* emulator = nullptr;
bool cpu_as_gpu = false;
std::optional<int> least_wide_rows;

// Like a launch on a GPU it runs when it is evaluated, and not at all if
// nothing needs its outputs.
class EmulatedLaunch : public mx::Primitive {
 public:
  EmulatedLaunch(
      mx::Stream s,
      const gpu::KernelSource& source,
      const gpu::Launch& launch,
      int threads)
      : Primitive(s),
        source_(source),
        constants_(gpu::constants_with(launch, threads)),
        groups_(launch.groups),
        threads_(threads) {}

  void eval_cpu(const Arrays& inputs, Arrays& outputs) override {
    mx::synchronize(stream()); // MLX fills the inputs on a thread of its own
    for (auto& out : outputs) {
      out.set_data(mx::allocator::malloc(out.nbytes()));
    }
    emulator->run({source_, constants_, inputs, outputs, groups_, threads_});
  }
  void eval_gpu(const Arrays&, Arrays&) override {
    throw Error("the emulator runs on the CPU");
  }
  const char* name() const override {
    return kName;
  }
  static constexpr const char* kName = "EmulatedLaunch";

 private:
  const gpu::KernelSource& source_;
  std::vector<gpu::Constant> constants_;
  std::array<int, 3> groups_;
  int threads_;
};

} // namespace

void emulate_kernels(KernelEmulator* with) {
  emulator = with;
  gpu::forget_launches();
}

KernelEmulator* kernel_emulator() {
  return emulator;
}

void treat_cpu_as_gpu(bool yes) {
  cpu_as_gpu = yes;
}

bool is_cpu_treated_as_gpu() {
  return cpu_as_gpu;
}

void set_wide_rows(std::optional<int> rows) {
  least_wide_rows = rows;
}

std::optional<int> wide_rows() {
  return least_wide_rows;
}

std::shared_ptr<mx::Primitive> emulated_launch(
    const gpu::KernelSource& source,
    const gpu::Launch& launch,
    int threads,
    mx::Stream s) {
  return std::make_shared<EmulatedLaunch>(s, source, launch, threads);
}

bool is_emulated_launch(const mx::Primitive& primitive) {
  return std::string_view(primitive.name()) == EmulatedLaunch::kName;
}

} // namespace nightingale::test_hooks
