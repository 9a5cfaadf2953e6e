#include "nightingale/backends/cpu/vec_avx512.h"

#include "nightingale/backends/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_avx512;
const Simd simd_avx512 = make_simd("avx512");

} // namespace nightingale::cpu
