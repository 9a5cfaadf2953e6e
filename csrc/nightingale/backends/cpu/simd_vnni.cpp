// The loops over codes for processors that multiply and add 16-bit integers in
// one instruction. As in simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/code_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace {

#include "nightingale/backends/cpu/code_loops.inl"

} // namespace

namespace nightingale::cpu {

extern const CodeLoops code_loops_vnni;
const CodeLoops code_loops_vnni = code_loops();

} // namespace nightingale::cpu
