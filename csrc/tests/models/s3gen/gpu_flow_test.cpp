#include <doctest/doctest.h>

#include "backends/gpu/emulated_gpu.h"
#include "mlx/memory.h"
#include "nightingale/backends/gpu/kernel.h"
#include "tiny_s3gen.h"

using namespace nightingale;
using namespace nightingale::testing;

// The flow as a GPU runs it: there, or by the emulator.

namespace {

Values on_the_cpu(const TinyS3Gen& tiny, const MelRequest& request) {
  return values(solve(*tiny.load_flow(mx::float32), request));
}

// Weights are rounded to the type, and so is what enters and leaves a product:
// float16 errs by 2e-3 and bfloat16 by 1.6e-2. A GPU may multiply in TF32,
// which rounds as float16 does.
double tolerance(mx::Dtype dtype) {
  return dtype == mx::float32 ? (emulated() ? 1e-5 : 5e-3)
      : dtype == mx::float16  ? 5e-3
                              : 4e-2;
}

// While it lives, notes the kernels that the emulator runs.
class LaunchOrder : public test_hooks::KernelEmulator {
 public:
  LaunchOrder() {
    test_hooks::emulate_kernels(this);
  }
  ~LaunchOrder() {
    test_hooks::emulate_kernels(&metal_emulator());
  }
  void run(const test_hooks::KernelRun& run) override {
    names.push_back(run.source.name);
    metal_emulator().run(run);
  }
  bool has_tiles() const override {
    return metal_emulator().has_tiles();
  }

  std::vector<std::string> names;
};

} // namespace

TEST_CASE("a mel from a GPU is the CPU's") {
  TinyS3Gen tiny{.transformers = 2};
  for (int prompt : {0, 13}) {
    auto request = tiny_request(4, prompt);
    auto expected = on_the_cpu(tiny, request);
    for (mx::Dtype dtype : kFloatTypes) {
      CAPTURE(prompt);
      CAPTURE(dtype);
      EmulatedGpu gpu;
      auto flow = tiny.load_flow(dtype, kernel_stream());
      CHECK(relative_error(solve(*flow, request), expected) < tolerance(dtype));
    }
  }
}

TEST_CASE("a mel by tiles is the CPU's") {
  TinyS3Gen tiny{.transformers = 2};
  auto request = tiny_request(4, 13);
  auto expected = on_the_cpu(tiny, request);
  KernelLimits limits({.tiles = true});
  for (mx::Dtype dtype : {mx::float16, mx::bfloat16}) {
    CAPTURE(dtype);
    EmulatedGpu gpu;
    auto flow = tiny.load_flow(dtype, kernel_stream());
    CHECK(relative_error(solve(*flow, request), expected) < tolerance(dtype));
  }
}

TEST_CASE("a meanflow's mel from a GPU is the CPU's") {
  TinyS3Gen tiny{.meanflow = true};
  auto request = tiny_request(3, 6);
  auto expected = on_the_cpu(tiny, request);
  EmulatedGpu gpu;
  auto flow = tiny.load_flow(mx::float32, kernel_stream());
  auto state = flow->begin(request);
  CHECK(state.ode.input.shape(0) == 1);
  CHECK(
      relative_error(solve(*flow, request), expected) < tolerance(mx::float32));
}

TEST_CASE("a flow can be left between two steps") {
  EmulatedGpu gpu;
  auto flow = TinyS3Gen{}.load_flow(mx::float16, kernel_stream());
  auto request = tiny_request(3, 6);
  auto expected = solve(*flow, request);
  {
    auto state = flow->begin(tiny_request(5, 8));
    flow->step(state);
  }
  auto state = flow->begin(request);
  while (!state.finished()) {
    flow->step(state);
    mx::synchronize(kernel_stream());
  }
  CHECK(same_bits(flow->finish(std::move(state)), expected));
}

TEST_CASE("on a GPU solutions stepped together are those stepped alone") {
  for (bool meanflow : {false, true}) {
    TinyS3Gen tiny{.middle_levels = 3, .meanflow = meanflow};
    for (mx::Dtype dtype : {mx::float32, mx::float16}) {
      CAPTURE(meanflow);
      CAPTURE(dtype);
      KernelLimits limits({.tiles = dtype == mx::float16});
      EmulatedGpu gpu;
      auto flow = tiny.load_flow(dtype, kernel_stream());
      auto requests = different_requests();
      auto mels = solve_together(*flow, requests);
      for (size_t i = 0; i < requests.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(mels[i], solve(*flow, requests[i])));
      }
    }
  }
}

TEST_CASE("on a GPU launches of solutions stepped together alternate") {
  if (!emulated()) {
    return; // which tells nobody in which order it was given them
  }
  EmulatedGpu gpu;
  auto flow = TinyS3Gen{.middle_levels = 3, .transformers = 2}.load_flow(
      mx::float16, kernel_stream());
  auto one = flow->begin(tiny_request(3, 6));
  auto other = flow->begin(tiny_request(3, 6));
  MelState* both[] = {&one, &other};
  flow->step(both);
  mx::synchronize(kernel_stream());
  LaunchOrder order;
  flow->step(one); // after which each instance has run
  mx::synchronize(kernel_stream());
  order.names.clear();
  flow->step(both);
  mx::synchronize(kernel_stream());
  const auto& names = order.names;
  REQUIRE(names.size() % 2 == 0);
  size_t pairs = names.size() / 2, alike = 0;
  for (size_t i = 0; i < pairs; ++i) {
    alike += names[2 * i] == names[2 * i + 1];
  }
  CHECK(pairs >= 20);
  CHECK(alike == pairs);
}

TEST_CASE("by tiles solutions of similar length share launches") {
  KernelLimits limits({.tiles = true});
  if (!gpu::has_tiles(kernel_stream())) {
    return; // a Mac
  }
  EmulatedGpu gpu;
  auto flow = TinyS3Gen{.middle_levels = 3, .transformers = 2}.load_flow(
      mx::float16, kernel_stream());
  std::vector<MelState> all;
  for (int tokens : {20, 18, 60, 15, 17}) {
    all.push_back(flow->begin(tiny_request(tokens)));
  }
  auto launches = [&](std::vector<MelState*> states) {
    long before = gpu::kernel_launches();
    flow->step(states);
    return gpu::kernel_launches() - before;
  };
  std::vector<MelState*> similar{&all[0], &all[1], &all[3], &all[4]};
  long one = launches({&all[0]});
  CHECK(one >= 30);
  // Besides, one joins the inputs, and each solution has an Euler step.
  CHECK(launches(similar) == one + 1 + 3);
  // One is far longer than the others.
  similar.push_back(&all[2]);
  CHECK(launches(similar) == 2 * one + 1 + 3);
}

TEST_CASE("on a GPU a step of the flow takes few launches and stays in place") {
  TinyS3Gen tiny{.middle_levels = 3, .transformers = 2};
  EmulatedGpu gpu;
  bool tiles = false;
  SUBCASE("by MLX's products") {}
  SUBCASE("by tiles") {
    tiles = true;
  }
  KernelLimits limits({.tiles = tiles});
  tiles = gpu::has_tiles(kernel_stream()); // a GPU has a mind of its own
  auto flow = tiny.load_flow(mx::float16, kernel_stream());
  auto state = flow->begin(tiny_request(3, 6));
  flow->step(state); // kernels are compiled in the first
  auto x = state.ode.x.id(), input = state.ode.input.id();
  long before = gpu::kernel_launches();
  flow->step(state);
  int levels = tiny.middle_levels + 2;
  // Of a block: its two sums and its activation. Of a level: taps, norm, sum.
  // Then three convolutions of two, the mel's bias and the Euler step.
  int most = levels * (3 * tiny.transformers + 3) + 3 * 2 + 1 + 1;
  if (tiles) {
    // Of a block: heads, attention, what follows it. Of a level: its two
    // convolutions. Then two convolutions of two and one of one, the mel's
    // product and the Euler step.
    most = levels * (3 * tiny.transformers + 2) + 2 * 2 + 1 + 1 + 1;
  }
  CHECK(gpu::kernel_launches() - before <= most);
  CHECK(state.ode.x.id() == x);
  CHECK(state.ode.input.id() == input);
}

TEST_CASE("on a GPU the steps of a flow leave memory flat") {
  if (emulated()) {
    return; // its launches run at once, in memory of their own
  }
  auto s = kernel_stream();
  auto flow = TinyS3Gen{}.load_flow(mx::float16, s);
  for (int tokens : {10, 60}) {
    CAPTURE(tokens);
    auto request = tiny_request(tokens);
    request.steps = 60;
    auto state = flow->begin(request);
    auto held = [&] {
      mx::synchronize(s);
      return mx::get_active_memory() + mx::get_cache_memory();
    };
    auto step_until = [&](int count) {
      while (state.done < count) {
        flow->step(state);
      }
      return held();
    };
    // How much is in use at once depends on how far the GPU is behind.
    size_t early = step_until(20), most = early + early / 4;
    mx::reset_peak_memory();
    CHECK(step_until(request.steps) <= most);
    CHECK(mx::get_peak_memory() <= most);
  }
}
