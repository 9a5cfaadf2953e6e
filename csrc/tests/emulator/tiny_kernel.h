#pragma once

#include <doctest/doctest.h>

#include <array>
#include <stdexcept>
#include <string>
#include <vector>

#include "backends/gpu/kernel_stream.h"
#include "mlx/allocator.h"
#include "mlx/ops.h"
#include "mlx/random.h"
#include "mlx/transforms.h"
#include "ops/arrays.h"

namespace nightingale::testing {

// A kernel of one input x and one output y, both of float32 unless said
// otherwise, given as text.
struct TinyKernel {
  std::string body;
  std::string header = "";
  mx::array x = mx::arange(0, 64, mx::float32);
  mx::Shape shape = {64}; // of y
  mx::Dtype dtype = mx::float32;
  std::array<int, 3> groups{1, 1, 1};
  int threads = 64;
  std::vector<gpu::Constant> constants = {};
  bool writes_x = false; // x is state
};

inline std::vector<mx::array> outputs_of(const TinyKernel& kernel) {
  std::vector<mx::array> outputs;
  auto& y = outputs.emplace_back(
      kernel.shape, kernel.dtype, nullptr, std::vector<mx::array>{});
  y.set_data(mx::allocator::malloc(y.nbytes()));
  y.set_status(mx::array::Status::available);
  return outputs;
}

inline mx::array run(const TinyKernel& kernel) {
  gpu::KernelSource source;
  source.name = "tiny";
  (kernel.writes_x ? source.state : source.inputs) = {"x"};
  source.outputs = {"y"};
  source.header = kernel.header + "\n";
  source.body = kernel.body + "\n";
  auto constants = kernel.constants;
  constants.emplace_back("THREADS", kernel.threads);
  auto x = mx::contiguous(kernel.x, false, mx::Device::cpu);
  mx::eval(x);
  auto outputs = outputs_of(kernel);
  std::vector<mx::array> inputs{x};
  metal_emulator().run(
      {source, constants, inputs, outputs, kernel.groups, kernel.threads});
  return outputs[0];
}

// What the emulator has to say against it.
inline std::string fault(const TinyKernel& kernel) {
  try {
    run(kernel);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

inline void check_fault(const TinyKernel& kernel, const std::string& expected) {
  auto message = fault(kernel);
  CAPTURE(kernel.body);
  CAPTURE(message);
  CHECK(message.find(expected) != std::string::npos);
}

} // namespace nightingale::testing
