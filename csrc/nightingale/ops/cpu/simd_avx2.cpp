#include "nightingale/ops/cpu/vec_avx2.h"

#include "nightingale/ops/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_avx2;
const Simd simd_avx2 = make_simd("avx2");

} // namespace nightingale::cpu
