#include "nightingale/ops/cpu/vec_plain.h"

#include "nightingale/ops/cpu/simd_loops.inl"

namespace nightingale::cpu {

extern const Simd simd_plain;
const Simd simd_plain = make_simd("plain");

} // namespace nightingale::cpu
