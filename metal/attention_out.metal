// attention_out: puts the parts of decode_attention together and projects them:
// y = residual + attention · wᵀ (+ bias) for one or two rows; also turns the watched
// heads' scores into weights.
// Groups with another position in y take the ROWS rows of another sequence.
// out, scores: what decode_attention gave; position, watched, text: what it
// took; most: the parts that a row of `out` has room for, where LISTED is above 1;
// w: [HEADS * 64, HEADS * 64]; bias: [N]; residual: [S * ROWS, N]
// → y: [S * ROWS, N]; weights: like scores
// Reference: reference::self_attention, reference::linear.
//
// inputs: out position most residual w bias scores watched text
// outputs: y weights
#include "gemv.h"

#if WATCH
// Over all parts of a head: the peak, and what the exponentials add up to.
METAL_FUNC float common_peak(const device float* head, int parts) {
  float peak = -INFINITY;
  for (int p = 0; p < parts; ++p) peak = max(peak, head[72 * p + 64]);
  return peak;
}
METAL_FUNC float common_total(const device float* head, int parts, float peak) {
  float total = 0.0f;
  for (int p = 0; p < parts; ++p)
    total += head[72 * p + 65] * precise::exp(head[72 * p + 64] - peak);
  return total;
}
#endif

// Puts the parts of a head together, eight channels of them, on eight lanes side
// by side, which share out the peaks. Four parts at a time, so that nothing but
// the first of all loads, how many there are, is waited for.
METAL_FUNC void put_together(
    const device float* head, int parts, int channel, uint lane, thread float* v) {
  float peak = -INFINITY, total = 0.0f;
  for (int i = 0; i < 8; ++i) v[i] = 0.0f;
  for (int begin = 0; begin < parts; begin += 4) {
    int own = begin + int(lane & 3u), last = parts - 1;
    Raw8<float> values[4];
#pragma unroll
    for (int p = 0; p < 4; ++p) values[p].fetch(head + 72 * min(begin + p, last) + channel);
    float own_peak = head[72 * min(own, last) + 64];
    float own_total = own < parts ? head[72 * min(own, last) + 65] : 0.0f;
    float highest = max(own_peak, simd_shuffle_xor(own_peak, 1u));
    highest = max(peak, max(highest, simd_shuffle_xor(highest, 2u)));
    float own_weight = own < parts ? precise::exp(own_peak - highest) : 0.0f;
    float sum = own_weight * own_total;
    sum += simd_shuffle_xor(sum, 1u);
    sum += simd_shuffle_xor(sum, 2u);
    float before = precise::exp(peak - highest);
    total = fma(total, before, sum);
    for (int i = 0; i < 8; ++i) v[i] *= before;
#pragma unroll
    for (int p = 0; p < 4; ++p) {
      float one[8], weight = simd_shuffle(own_weight, (lane & ~3u) + uint(p));
      values[p].unpack(one);
      for (int i = 0; i < 8; ++i) v[i] = fma(weight, one[i], v[i]);
    }
    peak = highest;
  }
  float scale = 1.0f / total;
  for (int i = 0; i < 8; ++i) v[i] *= scale;
}

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int K = HEADS * 64;
constexpr int VALUES = ROWS * BLOCK;
threadgroup float partial[SIMDS * VALUES];
uint lane = thread_index_in_simdgroup, simd = simdgroup_index_in_threadgroup;
int first = int(threadgroup_position_in_grid.x) * BLOCK;
#if LISTED > 1
int sequence = int(threadgroup_position_in_grid.y), room = most[0];
position += 8 * sequence;
out += long(sequence) * ROWS * HEADS * room * 72;
residual += sequence * ROWS * N;
y += sequence * ROWS * N;
#endif
int parts = position[0] / CHUNK + 1;

float sums[VALUES];
for (int i = 0; i < VALUES; ++i) sums[i] = 0.0f;

#pragma unroll
for (int begin = 0; begin < K; begin += THREADS * 8) {
  int element = begin + int(simd * 32 + lane) * 8;
  bool inside = K % (THREADS * 8) == 0 || element < K;
  element = inside ? element : 0;
  Weights8<W, S, BITS, GROUP, N, K> rows[BLOCK]; // under way before all else
#pragma unroll
  for (int o = 0; o < BLOCK; ++o)
    rows[o].load(w, N % BLOCK == 0 ? first + o : min(first + o, N - 1), element);
  float v[ROWS][8], v_sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    put_together(
#if LISTED > 1
        out + (r * HEADS + element / 64) * room * 72, parts, element % 64, lane, v[r]);
#else
        out + (r * HEADS + element / 64) * parts * 72, parts, element % 64, lane, v[r]);
#endif
    for (int i = 0; i < 8; ++i) v[r][i] = inside ? v[r][i] : 0.0f;
    v_sums[r] = BITS < 16 ? sum8(v[r]) : 0.0f;
  }
#pragma unroll
  for (int o = 0; o < BLOCK; ++o)
    rows[o].template add_products<ROWS>(v, v_sums, sums + o * ROWS);
}

leave_sums<VALUES>(sums, partial, simd, lane);
threadgroup_barrier(mem_flags::mem_threadgroup);
int i = int(thread_index_in_threadgroup);
int column = first + i / ROWS, at = i % ROWS * N + column;
if (i < VALUES && column < N)
#if BIAS
  y[at] = Y(sum_partials<SIMDS, VALUES>(partial, i) + float(bias[column]) + float(residual[at]));
#else
  y[at] = Y(sum_partials<SIMDS, VALUES>(partial, i) + float(residual[at]));
#endif
#if WATCH
if (first == 0) {
#if LISTED > 1
  text += 4 * sequence;
  weights += sequence * WATCH * int(text[1]);
  scores += sequence * WATCH * int(text[1]);
#endif
  for (int h = 0; h < WATCH; ++h) {
    int length = int(text[1]);
#if LISTED > 1
    const device float* from = out + int(watched[h]) * room * 72;
#else
    const device float* from = out + int(watched[h]) * parts * 72;
#endif
    float peak = common_peak(from, parts);
    float total = common_total(from, parts, peak);
#if LISTED > 1
    for (int t = i; t < int(text[2]); t += THREADS)
#else
    for (int t = i; t < length; t += THREADS)
#endif
      weights[h * length + t] = precise::exp(scores[h * length + t] - peak) / total;
  }
}
#endif
