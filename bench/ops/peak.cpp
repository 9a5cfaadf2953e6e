#include "peak.h"

#include <algorithm>

#include "nightingale/backends/cpu/peak.h"

namespace nightingale::bench {

const Peak& peak() {
  static const Peak measured{
      cpu::measure_best_bandwidth(), cpu::measure_gemm_flops()};
  return measured;
}

void report(benchmark::State& state, const Work& work, double seconds) {
  double ideal =
      std::max(work.bytes / peak().read_bytes, work.flops / peak().flops);
  state.counters["GB/s"] = work.bytes / seconds * 1e-9;
  state.counters["GFLOP/s"] = work.flops / seconds * 1e-9;
  state.counters["of_peak"] = ideal / seconds;
}

} // namespace nightingale::bench
