// norm_gemv: y = rms_norm(x) · wᵀ for one or two rows, or with SWIGLU
// silu(gate) * up of it: the first half of w is the gate.
// x: [ROWS, K]; norm: [K]; w: [N, K] → y: [ROWS, N], or [ROWS, N / 2]
// Each threadgroup makes BLOCK products. The root mean square is taken beside
// them and applied at the end, so that nothing waits for it.
// Twin: graph::norm_linear, graph::norm_swiglu.
//
// inputs: x norm w
// outputs: y
#include "gemv.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int OUT = SWIGLU ? BLOCK / 2 : BLOCK;
constexpr int VALUES = ROWS * (BLOCK + 1);
threadgroup float partial[SIMDS * VALUES];
threadgroup float total[VALUES];
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
int first = int(threadgroup_position_in_grid.x) * OUT;

float sums[BLOCK + 1][ROWS];
for (int o = 0; o <= BLOCK; ++o)
  for (int r = 0; r < ROWS; ++r) sums[o][r] = 0.0f;

#pragma unroll
for (int begin = 0; begin < K; begin += THREADS * 8) {
  int element = begin + int(simd * 32 + lane) * 8;
  if (K % (THREADS * 8) != 0 && element >= K) break;
  float g[8], v[ROWS][8], v_sums[ROWS];
  load8(norm + element, g);
  for (int r = 0; r < ROWS; ++r) {
    load8(x + r * K + element, v[r]);
    sums[BLOCK][r] += dot8(v[r], v[r]);
    for (int i = 0; i < 8; ++i) v[r][i] *= g[i];
    v_sums[r] = BITS < 16 ? sum8(v[r]) : 0.0f;
  }
#pragma unroll
  for (int o = 0; o < BLOCK; ++o) {
    int row = o < OUT ? first + o : N / 2 + first + o - OUT;
    add_products<W, S, BITS, GROUP, N, K, ROWS>(
        w, min(row, N - 1), element, v, v_sums, sums[o]);
  }
}

leave_sums<BLOCK + 1, ROWS>(sums, partial, simd, lane);
threadgroup_barrier(mem_flags::mem_threadgroup);
for (int i = int(thread_index_in_threadgroup); i < VALUES; i += THREADS) {
  total[i] = sum_partials<SIMDS, VALUES>(partial, i);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
for (int i = int(thread_index_in_threadgroup); i < OUT * ROWS; i += THREADS) {
  int o = i / ROWS, r = i % ROWS;
  float scale = precise::rsqrt(total[BLOCK * ROWS + r] / K + as_type<float>(EPS));
  float value = scale * total[o * ROWS + r];
  if (SWIGLU) {
    float up = scale * total[(OUT + o) * ROWS + r];
    value = value / (1.0f + precise::exp(-value)) * up;
  }
  int columns = SWIGLU ? N / 2 : N;
  if (first + o < columns) y[r * columns + first + o] = Y(value);
}
