// gemv: y = x · wᵀ and what follows a product (bias, activation, residual) for
// few rows. Where NORM is 1, x is rms_norm(x, norm), where it is 2,
// layer_norm(x, norm, shift). With SWIGLU the result is silu(gate) * up, where the
// first half of w is the gate.
// x: [M, K]; w: [N, K]; norm, shift: [K]; bias: [N]; residual: [M, N]; extent: M,
// where ROWS is above 2 → y: [M, N], or [M, N / 2]
// Each threadgroup makes BLOCK products. The root mean square is taken beside
// them and applied at the end, so that nothing waits for it. A mean has to be
// known first: every group takes it of the whole row.
// Groups with another position in y take the ROWS rows after those. A row's sums
// are the same whatever ROWS is: it decides how many rows share the weights that a
// lane has loaded.
// Reference: reference::linear, reference::norm_linear, reference::norm_swiglu.
//
// inputs: x w norm shift bias residual extent
// outputs: y
#include "gemv.h"
#if ACTIVATION
#include "activations.h"
#endif

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int OUT = SWIGLU ? BLOCK / 2 : BLOCK;
constexpr int COLUMNS = SWIGLU ? N / 2 : N;
constexpr int VALUES = ROWS * BLOCK;
threadgroup float partial[SIMDS * VALUES];
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
int first = int(threadgroup_position_in_grid.x) * OUT;
int row = int(threadgroup_position_in_grid.y) * ROWS;
#if ROWS > 2
int last = extent[0] - 1 - row; // of the group's rows
#endif
x += row * K;

float sums[VALUES];
for (int i = 0; i < VALUES; ++i) sums[i] = 0.0f;
#if NORM == 2
threadgroup float moments[2 * SIMDS * ROWS];
float mean[ROWS], deviation[ROWS];
for (int r = 0; r < ROWS; ++r) mean[r] = 0.0f;
for (int pass = 0; pass < 2; ++pass) { // the mean, then the squares about it
  float moment[ROWS];
  for (int r = 0; r < ROWS; ++r) moment[r] = 0.0f;
  for (int element = int(simd * 32 + lane) * 8; element < K; element += THREADS * 8) {
    for (int r = 0; r < ROWS; ++r) {
      float v[8];
#if ROWS > 2
      load8(x + min(r, last) * K + element, v);
#else
      load8(x + r * K + element, v);
#endif
      for (int i = 0; i < 8; ++i) v[i] -= mean[r];
      moment[r] += pass == 0 ? sum8(v) : dot8(v, v);
    }
  }
  auto partial_moments = moments + pass * SIMDS * ROWS;
  leave_sums<ROWS>(moment, partial_moments, simd, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int r = 0; r < ROWS; ++r) {
    float one = sum_partials<SIMDS, ROWS>(partial_moments, r) / K;
    if (pass == 0) mean[r] = one;
    else deviation[r] = precise::rsqrt(one + as_type<float>(EPS));
  }
}
#endif
#if NORM == 1
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
#if NORM == 2
  float h[8];
  load8(shift + element, h);
#endif
  for (int r = 0; r < ROWS; ++r) {
#if ROWS > 2
    load8(x + min(r, last) * K + element, v[r]);
#else
    load8(x + r * K + element, v[r]);
#endif
#if NORM == 2
    for (int i = 0; i < 8; ++i)
      v[r][i] = fma((v[r][i] - mean[r]) * deviation[r], g[i], h[i]);
#endif
#if NORM == 1
    square_sums[r] += dot8(v[r], v[r]);
    for (int i = 0; i < 8; ++i) v[r][i] *= g[i];
#endif
    v_sums[r] = BITS < 16 ? sum8(v[r]) : 0.0f;
  }
#pragma unroll
  for (int o = 0; o < BLOCK; ++o) {
    int at = o < OUT ? first + o : COLUMNS + first + o - OUT;
    Weights8<W, S, BITS, GROUP, N, K> weights;
    weights.load(w, COLUMNS % OUT == 0 ? at : min(at, N - 1), element);
    weights.template add_products<ROWS>(v, v_sums, sums + o * ROWS);
  }
}

leave_sums<VALUES>(sums, partial, simd, lane);
#if NORM == 1
leave_sums<ROWS>(square_sums, squares, simd, lane);
#endif
threadgroup_barrier(mem_flags::mem_threadgroup);
int i = int(thread_index_in_threadgroup);
int column = first + i / ROWS, r = i % ROWS, at = (row + r) * COLUMNS + column;
#if ROWS > 2
if (r > last) return;
#endif
if (i < OUT * ROWS && column < COLUMNS) {
  float value = sum_partials<SIMDS, VALUES>(partial, i), scale = 1.0f;
#if NORM == 1
  float square = sum_partials<SIMDS, ROWS>(squares, r);
  scale = precise::rsqrt(square / K + as_type<float>(EPS));
  value = scale * value;
#endif
#if SWIGLU
  float up = scale * sum_partials<SIMDS, VALUES>(partial, OUT * ROWS + i);
  value = value / (1.0f + precise::exp(-value)) * up;
#endif
#if BIAS
  value += float(bias[column]);
#endif
#if ACTIVATION
  value = activated<ACTIVATION>(value);
#endif
#if RESIDUAL
  value += float(residual[at]);
#endif
  y[at] = Y(value);
}
