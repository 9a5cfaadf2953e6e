// gemv: y = x · wᵀ (+ residual) for one or two rows. With NORM x is rms_norm(x,
// norm), and with SWIGLU the result is silu(gate) * up, where the first half of
// w is the gate.
// x: [ROWS, K]; w: [N, K]; norm: [K]; residual: [ROWS, N]
//   → y: [ROWS, N], or [ROWS, N / 2]
// Each threadgroup makes BLOCK products. The root mean square is taken beside
// them and applied at the end, so that nothing waits for it.
// Reference: reference::linear, reference::norm_linear, reference::norm_swiglu.
//
// inputs: x w norm residual
// outputs: y
#include "gemv.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int OUT = SWIGLU ? BLOCK / 2 : BLOCK;
constexpr int COLUMNS = SWIGLU ? N / 2 : N;
constexpr int VALUES = ROWS * BLOCK;
threadgroup float partial[SIMDS * VALUES];
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
int first = int(threadgroup_position_in_grid.x) * OUT;

float sums[VALUES];
for (int i = 0; i < VALUES; ++i) sums[i] = 0.0f;
#if NORM
threadgroup float squares[SIMDS * ROWS];
float square_sums[ROWS];
for (int r = 0; r < ROWS; ++r) square_sums[r] = 0.0f;
#endif

#pragma unroll
for (int begin = 0; begin < K; begin += THREADS * 8) {
  int element = begin + int(simd * 32 + lane) * 8;
  if (K % (THREADS * 8) != 0 && element >= K) break;
  float v[ROWS][8], v_sums[ROWS];
#if NORM
  float g[8];
  load8(norm + element, g);
#endif
  for (int r = 0; r < ROWS; ++r) {
    load8(x + r * K + element, v[r]);
#if NORM
    square_sums[r] += dot8(v[r], v[r]);
    for (int i = 0; i < 8; ++i) v[r][i] *= g[i];
#endif
    v_sums[r] = BITS < 16 ? sum8(v[r]) : 0.0f;
  }
#pragma unroll
  for (int o = 0; o < BLOCK; ++o) {
    int row = o < OUT ? first + o : COLUMNS + first + o - OUT;
    Weights8<W, S, BITS, GROUP, N, K> weights;
    weights.load(w, COLUMNS % OUT == 0 ? row : min(row, N - 1), element);
    weights.template add_products<ROWS>(v, v_sums, sums + o * ROWS);
  }
}

leave_sums<VALUES>(sums, partial, simd, lane);
#if NORM
leave_sums<ROWS>(square_sums, squares, simd, lane);
#endif
threadgroup_barrier(mem_flags::mem_threadgroup);
int i = int(thread_index_in_threadgroup);
int column = first + i / ROWS, r = i % ROWS, at = r * COLUMNS + column;
if (i < OUT * ROWS && column < COLUMNS) {
  float value = sum_partials<SIMDS, VALUES>(partial, i), scale = 1.0f;
#if NORM
  float square = sum_partials<SIMDS, ROWS>(squares, r);
  scale = precise::rsqrt(square / K + as_type<float>(EPS));
  value = scale * value;
#endif
#if SWIGLU
  float up = scale * sum_partials<SIMDS, VALUES>(partial, OUT * ROWS + i);
  value = value / (1.0f + precise::exp(-value)) * up;
#endif
  y[at] = Y(RESIDUAL ? value + float(residual[at]) : value);
}
