#include "nightingale/ops/cpu/vec_avx512.h"

#include "nightingale/ops/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_avx512;
const Simd simd_avx512 = make_simd("avx512");

} // namespace nightingale::cpu
