#include "nightingale/backends/cpu/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "nightingale/backends/cpu/blas.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

template <typename F>
double seconds_of(F body) {
  auto start = std::chrono::steady_clock::now();
  body();
  std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  return taken.count();
}

double measure_bandwidth(float (*read)(const float*, int64_t)) {
  constexpr int64_t bytes = int64_t(1) << 30, tile = 1 << 16;
  constexpr int64_t count = bytes / sizeof(float);
  constexpr int passes = 9;
  std::unique_ptr<float[], void (*)(float*)> buffer(
      static_cast<float*>(std::aligned_alloc(1 << 21, bytes)),
      [](float* p) { std::free(p); });
#if defined(__linux__)
  madvise(buffer.get(), bytes, MADV_HUGEPAGE); // as the weights are
#endif
  std::fill_n(buffer.get(), count, 1.0f);
  std::atomic<float> sink = 0.0f; // what is read must be used
  std::vector<double> rates;
  for (int pass = 0; pass < passes; ++pass) {
    double taken = seconds_of([&] {
      parallel_for(count / tile, [&](int i) {
        float sum = read(buffer.get() + i * tile, tile);
        sink.store(sum, std::memory_order_relaxed);
      });
    });
    rates.push_back(bytes / taken);
  }
  std::nth_element(rates.begin(), rates.begin() + passes / 2, rates.end());
  return rates[passes / 2];
}

} // namespace

double measure_read_bandwidth() {
  return measure_bandwidth(simd().sum);
}

double measure_best_bandwidth() {
  return measure_bandwidth(simd().sum_streams);
}

double measure_gemm_flops() {
  constexpr int size = 768, passes = 12;
  std::vector<float> a(size * size, 1.0f), b(size * size, 1.0f);
  int tiles = 2 * threads();
  std::vector<std::vector<float>> c(tiles, std::vector<float>(size * size));
  double flops = 2.0 * size * size * size * tiles, best = 0.0;
  for (int pass = 0; pass < passes; ++pass) {
    double taken = seconds_of([&] {
      parallel_for(tiles, [&](int i) {
        gemm(
            size,
            size,
            size,
            a.data(),
            size,
            b.data(),
            size,
            Layout::transposed,
            c[i].data(),
            size);
      });
    });
    best = std::max(best, flops / taken);
  }
  return best;
}

} // namespace nightingale::cpu
