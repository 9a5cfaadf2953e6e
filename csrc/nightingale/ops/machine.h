#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

// The processor that ops run on, and what they have used of it so far.

namespace nightingale::ops {

void set_threads(int count);
int threads();

const char* simd_name();
const char* blas_name();
// What multiplies bfloat16 on the CPU: amx, avx512bf16, neonbf16 or "".
const char* bf16_name();

// Bytes a second and floating-point operations a second, measured now.
double measure_read_bandwidth();
double measure_best_bandwidth();
double measure_gemm_flops();

// Memory that CPU ops keep for the next ones, and how often they have asked the
// system for more.
size_t idle_bytes();
uint64_t system_allocations();

// Gives all memory that nothing uses back to the system: what CPU ops and MLX
// keep for the next ops, and what the C library keeps.
void release_memory();

// CPU ops that failed while they ran, as where memory was short, so far in this
// process, and why the last one did. Their results are zeros: a caller whose
// work may have been among them must drop it.
uint64_t failed_ops();
std::string last_failure();

// Ends all work on the CPU: every op from now on throws an Error.
void stop_ops();

// Launches of our GPU kernels in this process.
long kernel_launches();

// Of the kernel text in these launches, which MLX hashes each time.
long kernel_source_bytes();

// How many kernels have been launched for the first time, which compiles them:
// each once for every type and size.
long first_kernel_launches();

// The names of the kernels that have been launched.
std::vector<std::string> launched_kernels();

} // namespace nightingale::ops
