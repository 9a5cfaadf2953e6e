#include "nightingale/backends/cpu/vec_avx2.h"

#include "nightingale/backends/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_avx2;
const Simd simd_avx2 = make_simd("avx2");

} // namespace nightingale::cpu
