#pragma once

namespace nightingale::cpu {

// What this machine's memory and cores can do now, with the thread count in
// force: the ceilings that benchmarks are held against.

// Bytes a second of reading a buffer far larger than the caches, every thread
// from end to end of its part: the middle one of some passes, because what is
// held against it is an average too.
double measure_read_bandwidth();

// The same in four streams a thread that prefetch: the most that was got here.
double measure_best_bandwidth();

// Floating-point operations a second of BLAS's sgemm, a tile on each thread.
double measure_gemm_flops();

} // namespace nightingale::cpu
