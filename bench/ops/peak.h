#pragma once

#include <benchmark/benchmark.h>

#include <chrono>

#include "mlx/array.h"
#include "mlx/transforms.h"

namespace nightingale::bench {

// What this machine can do with the thread count in force, measured once.
struct Peak {
  double read_bytes; // a second, all threads streaming 1 GB
  double flops; // a second, all threads in sgemm
};

const Peak& peak();

// What one run of an op must read and compute at the least.
struct Work {
  double bytes;
  double flops;
};

// Counts rates and `of_peak`: the time that the scarcer of the two takes at the
// peak, over the time taken.
void report(benchmark::State& state, const Work& work, double seconds);

// Times `op`, which builds one array, and reports it.
template <typename Op>
void run(benchmark::State& state, const Work& work, Op op) {
  auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    auto y = op();
    mlx::core::eval(y);
  }
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  report(state, work, taken.count() / state.iterations());
}

} // namespace nightingale::bench
