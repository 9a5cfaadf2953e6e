#include "nightingale/backends/cpu/vec_neon.h"

#include "nightingale/backends/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_neon;
const Simd simd_neon = make_simd("neon");

} // namespace nightingale::cpu
