// attention_out: puts the parts of decode_attention together and projects them:
// y = residual + attention · wᵀ for one or two rows; also turns the watched
// heads' scores into weights.
// out, scores: what decode_attention gave; place, watched, text: what it
// took; w: [HEADS * 64, HEADS * 64];
// residual: [ROWS, N] → y: [ROWS, N]; weights: [watched, text[1]]
// Twin: graph::self_attention, graph::linear.
//
// inputs: out place residual w scores watched text
// outputs: y weights
#include "gemv.h"

// Over all parts of a head: the peak, and what the exponentials add up to.
METAL_FUNC float common_peak(const device float* head, int parts) {
  float peak = head[64];
  for (int p = 1; p < parts; ++p) peak = max(peak, head[72 * p + 64]);
  return peak;
}
METAL_FUNC float common_total(const device float* head, int parts, float peak) {
  float total = 0.0f;
  for (int p = 0; p < parts; ++p)
    total += head[72 * p + 65] * precise::exp(head[72 * p + 64] - peak);
  return total;
}

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int K = HEADS * 64;
constexpr int VALUES = ROWS * BLOCK;
threadgroup float partial[SIMDS * VALUES];
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
int first = int(threadgroup_position_in_grid.x) * BLOCK;
int parts = place[0] / CHUNK + 1;

float sums[BLOCK][ROWS];
for (int o = 0; o < BLOCK; ++o)
  for (int r = 0; r < ROWS; ++r) sums[o][r] = 0.0f;

#pragma unroll
for (int begin = 0; begin < K; begin += THREADS * 8) {
  int element = begin + int(simd * 32 + lane) * 8;
  if (K % (THREADS * 8) != 0 && element >= K) break;
  int head = element / 64, channel = element % 64;
  float v[ROWS][8], v_sums[ROWS];
  for (int r = 0; r < ROWS; ++r) {
    const device float* from = out + (r * HEADS + head) * parts * 72;
    float peak = common_peak(from, parts);
    float scale = 1.0f / common_total(from, parts, peak);
    for (int i = 0; i < 8; ++i) v[r][i] = 0.0f;
    for (int p = 0; p < parts; ++p) {
      float one[8], weight = scale * precise::exp(from[72 * p + 64] - peak);
      load8(from + 72 * p + channel, one);
      for (int i = 0; i < 8; ++i) v[r][i] = fma(weight, one[i], v[r][i]);
    }
    v_sums[r] = BITS < 16 ? sum8(v[r]) : 0.0f;
  }
#pragma unroll
  for (int o = 0; o < BLOCK; ++o)
    add_products<W, S, BITS, GROUP, N, K, ROWS>(
        w, min(first + o, N - 1), element, v, v_sums, sums[o]);
}

leave_sums<BLOCK, ROWS>(sums, partial, simd, lane);
threadgroup_barrier(mem_flags::mem_threadgroup);
for (int i = int(thread_index_in_threadgroup); i < VALUES; i += THREADS) {
  int column = first + i / ROWS, at = i % ROWS * N + column;
  if (column < N)
    y[at] = Y(sum_partials<SIMDS, VALUES>(partial, i) + float(residual[at]));
}
if (first == 0) {
  for (int h = 0; h < WATCH; ++h) {
    const device float* from = out + int(watched[h]) * parts * 72;
    int length = int(text[1]);
    float peak = common_peak(from, parts);
    float total = common_total(from, parts, peak);
    for (int i = int(thread_index_in_threadgroup); i < length; i += THREADS)
      weights[h * length + i] = precise::exp(scores[h * length + i] - peak) / total;
  }
}
