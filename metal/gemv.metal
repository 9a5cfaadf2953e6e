// gemv: y = x · wᵀ (+ residual) for one or two rows.
// x: [ROWS, K]; w: [N, K]; residual: [ROWS, N] → y: [ROWS, N]
// Each threadgroup makes BLOCK products.
// Reference: reference::linear.
//
// inputs: x w residual
// outputs: y
#include "gemv.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int VALUES = ROWS * BLOCK;
threadgroup float partial[SIMDS * VALUES];
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
int first = int(threadgroup_position_in_grid.x) * BLOCK;

float sums[VALUES];
for (int i = 0; i < VALUES; ++i) sums[i] = 0.0f;

#pragma unroll
for (int begin = 0; begin < K; begin += THREADS * 8) {
  int element = begin + int(simd * 32 + lane) * 8;
  if (K % (THREADS * 8) != 0 && element >= K) break;
  float v[ROWS][8], v_sums[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    load8(x + r * K + element, v[r]);
    v_sums[r] = BITS < 16 ? sum8(v[r]) : 0.0f;
  }
#pragma unroll
  for (int o = 0; o < BLOCK; ++o) {
    Weights8<W, S, BITS, GROUP, N, K> weights;
    weights.load(w, N % BLOCK == 0 ? first + o : min(first + o, N - 1), element);
    weights.template add_products<ROWS>(v, v_sums, sums + o * ROWS);
  }
}

leave_sums<VALUES>(sums, partial, simd, lane);
threadgroup_barrier(mem_flags::mem_threadgroup);
int i = int(thread_index_in_threadgroup);
int column = first + i / ROWS, at = i % ROWS * N + column;
if (i < VALUES && column < N) {
  float value = sum_partials<SIMDS, VALUES>(partial, i);
  y[at] = Y(RESIDUAL ? value + float(residual[at]) : value);
}
