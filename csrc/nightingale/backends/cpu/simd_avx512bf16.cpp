// The loops for processors that round to bfloat16 in one instruction.

#include "nightingale/backends/cpu/vec_avx512.h"

#include "nightingale/backends/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_avx512bf16;
const Simd simd_avx512bf16 = make_simd("avx512bf16");

} // namespace nightingale::cpu
