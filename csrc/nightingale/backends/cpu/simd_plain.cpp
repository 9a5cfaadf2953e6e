#include "nightingale/backends/cpu/vec_plain.h"

#include "nightingale/backends/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_plain;
const Simd simd_plain = make_simd("plain");

} // namespace nightingale::cpu
