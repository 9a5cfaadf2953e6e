#pragma once

namespace nightingale::cpu {

// What this machine's memory and cores can do now, with the thread count in
// force: the ceilings that benchmarks are held against.

// Bytes a second of reading a buffer far larger than the caches: the best of a
// few passes over about a second.
double measure_read_bandwidth();

// Floating-point operations a second of BLAS's sgemm, a tile on each thread.
double measure_gemm_flops();

} // namespace nightingale::cpu
