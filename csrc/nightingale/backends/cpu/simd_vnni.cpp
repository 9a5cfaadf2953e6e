// The quantized loops for processors that multiply and add 16-bit integers in
// one instruction. As in simd_loops.inl, no standard headers.

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace {

#include "nightingale/backends/cpu/quantized_loops.inl"

} // namespace

namespace nightingale::cpu {

extern const QuantizedLoops quantized_loops_vnni;
const QuantizedLoops quantized_loops_vnni = quantized_loops();

} // namespace nightingale::cpu
