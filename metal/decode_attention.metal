// decode_attention: one new position attends to the cache, which it is written
// into first. A threadgroup takes the positions [part * CHUNK, + CHUNK) of one
// head of one row; attention_out puts the parts together. Each of S sequences has
// ROWS rows and its own caches, of which LISTED are given.
// qkv: [S * ROWS, 3, HEADS, 64]; frequencies: [32], radians per position; position:
// [S, 8], positions before this one, capacity of the caches; keys, values: [ROWS,
// HEADS, capacity, 64], or quantized where BITS is 8 or 4 (see quantized_cache.h);
// watched: heads of a sequence's first row whose scores for the positions
// [text[0], + text[1]) are wanted; text: [2], or where LISTED is above 1 [S, 4], with
// the largest length of all in text[1] and a sequence's own in text[2].
// → out: [S * ROWS, HEADS, most parts, 72], sums of exp(score - peak) * value, then
// the peak, the sum of the exponentials and zeros; scores: [S, watched, longest text],
// scaled by 1/8 like all of them.
// Eight lanes share a position's 64 channels, so that a load is 16 bytes of half
// and a SIMD group reads four positions at once. All that a lane will need of the
// cache is loaded first: on the H200 waiting for memory once, not at every
// position, took a launch from 16 to a few µs.
// Reference: reference::self_attention.
//
// inputs: qkv frequencies position after[8] watched text
// state: keys[8] values[8]
// outputs: out scores
#include "quantized_cache.h"
#include "rotary.h"

//: kernel
constexpr int SIMDS = THREADS / 32;
constexpr int EACH = CHUNK / (SIMDS * 4);
threadgroup float query[64];
threadgroup float new_key[64];
threadgroup float new_value[64];
threadgroup float score[CHUNK];
threadgroup float gathered[SIMDS * 64];
int lane = int(thread_index_in_simdgroup), simd = int(simdgroup_index_in_threadgroup);
int tid = int(thread_index_in_threadgroup);
int part = int(threadgroup_position_in_grid.x), parts = int(threadgroups_per_grid.x);
int head = int(threadgroup_position_in_grid.y), row = int(threadgroup_position_in_grid.z);
#if LISTED > 1
int sequence = row / ROWS;
position += 8 * sequence;
if (sequence == 1) { keys = keys1; values = values1; }
#endif
#if LISTED > 2
if (sequence == 2) { keys = keys2; values = values2; }
if (sequence == 3) { keys = keys3; values = values3; }
#endif
#if LISTED > 4
if (sequence == 4) { keys = keys4; values = values4; }
if (sequence == 5) { keys = keys5; values = values5; }
if (sequence == 6) { keys = keys6; values = values6; }
if (sequence == 7) { keys = keys7; values = values7; }
#endif
int past = position[0], capacity = position[1];
int first = part * CHUNK, count = min(past + 1 - first, CHUNK);
#if LISTED > 1
if (count <= 0) return; // only other sequences have this part
#endif

const device X* q = qkv + (row * 3 * HEADS + head) * 64;
const device X* k = q + HEADS * 64;
const device X* v = k + HEADS * 64;
#if LISTED > 1
long cache = long(row % ROWS * HEADS + head) * capacity * row_size<BITS>();
#else
long cache = long(row * HEADS + head) * capacity * row_size<BITS>();
#endif
int slot = lane / 8, channel = lane % 8 * 8;
Held8<C, BITS> key[EACH], value[EACH];
if (past > 0) {
#pragma unroll
  for (int n = 0; n < EACH; ++n) {
    int position = min(first + (n * SIMDS + simd) * 4 + slot, past - 1);
    long at = cache + long(position) * row_size<BITS>();
    key[n].load((const device C*)keys + at, channel);
    value[n].load((const device C*)values + at, channel);
  }
}
// While those loads are under way two SIMD groups of the last part make the new
// key and value, and two, others if there are, the query. One SIMD group alone
// makes all of them.
long own = cache + long(past) * row_size<BITS>();
if (part == past / CHUNK && simd == 0) {
  float a = turned(k, frequencies, past, lane), b = turned(k, frequencies, past, lane + 32);
  keep_row<BITS>(a, b, keys + own, lane);
  new_key[lane] = a;
  new_key[lane + 32] = b;
}
if (part == past / CHUNK && simd == (SIMDS > 1 ? 1 : 0)) {
  float a = float(v[lane]), b = float(v[lane + 32]);
  keep_row<BITS>(a, b, values + own, lane);
  new_value[lane] = a;
  new_value[lane + 32] = b;
}
for (int turns = tid - max(THREADS - 64, 0); turns >= 0 && turns < 64; turns += THREADS)
  query[turns] = turned(q, frequencies, past, turns) * 0.125f;
threadgroup_barrier(mem_flags::mem_threadgroup);

float mine[8];
for (int i = 0; i < 8; ++i) mine[i] = query[channel + i];
#pragma unroll
for (int n = 0; n < EACH; ++n) {
  int at = (n * SIMDS + simd) * 4 + slot;
  float one[8];
  key[n].get(one);
  if (first + at == past)
    for (int i = 0; i < 8; ++i) one[i] = new_key[channel + i];
  float dot = at < count ? dot8(mine, one) : 0.0f;
  for (uint mask = 1; mask < 8; mask <<= 1) dot += simd_shuffle_xor(dot, mask);
  if (lane % 8 == 0) score[at] = at < count ? dot : -INFINITY;
}
threadgroup_barrier(mem_flags::mem_threadgroup);

float peak = -INFINITY;
for (int i = lane; i < CHUNK; i += 32) peak = max(peak, score[i]);
peak = simd_max(peak);
float total = 0.0f;
for (int i = lane; i < CHUNK; i += 32) total += precise::exp(score[i] - peak);
total = simd_sum(total);

float sums[8];
for (int i = 0; i < 8; ++i) sums[i] = 0.0f;
#pragma unroll
for (int n = 0; n < EACH; ++n) {
  int at = (n * SIMDS + simd) * 4 + slot;
  float weight = precise::exp(score[at] - peak), one[8];
  value[n].get(one);
  if (first + at == past)
    for (int i = 0; i < 8; ++i) one[i] = new_value[channel + i];
  if (at < count)
    for (int i = 0; i < 8; ++i) sums[i] = fma(weight, one[i], sums[i]);
}
for (int i = 0; i < 8; ++i) {
  sums[i] += simd_shuffle_xor(sums[i], 8);
  sums[i] += simd_shuffle_xor(sums[i], 16);
  if (slot == 0) gathered[simd * 64 + channel + i] = sums[i];
}
threadgroup_barrier(mem_flags::mem_threadgroup);
int here = (row * HEADS + head) * parts + part;
for (int c = tid; c < 72; c += THREADS) {
  float sum = c == 64 ? peak : c == 65 ? total : 0.0f;
  for (int g = 0; c < 64 && g < SIMDS; ++g) sum += gathered[g * 64 + c];
  out[here * 72 + c] = sum;
}
#if WATCH
#if LISTED > 1
text += 4 * sequence;
scores += sequence * WATCH * int(text[1]);
#endif
for (int w = 0; w < WATCH; ++w) {
#if LISTED > 1
  if (row % ROWS != 0 || head != int(watched[w])) continue;
#else
  if (row != 0 || head != int(watched[w])) continue;
#endif
  for (int i = tid; i < count; i += THREADS) {
    int in_text = first + i - int(text[0]), length = int(text[1]);
    if (in_text >= 0 && in_text < length) scores[w * length + in_text] = score[i];
  }
}
#endif
