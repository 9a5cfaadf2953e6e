#include <benchmark/benchmark.h>

#include <cstdio>

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/backends/cpu/threads.h"
#include "peak.h"

int main(int argc, char** argv) {
  using namespace nightingale;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) {
    return 1;
  }
  std::printf(
      "%d threads, %s, %s\n"
      "peak read bandwidth %.1f GB/s, peak sgemm %.1f GFLOP/s\n",
      cpu::threads(),
      cpu::simd().name,
      cpu::blas_name(),
      bench::peak().read_bytes * 1e-9,
      bench::peak().flops * 1e-9);
  std::fflush(stdout);
  benchmark::RunSpecifiedBenchmarks();
}
