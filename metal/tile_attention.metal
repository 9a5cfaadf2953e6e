// tile_attention: full attention over frames. Every head's softmax(q · kᵀ /
// sqrt(D)) · v, 32 keys at a time, so that scores stay in registers: what was
// summed before is scaled down when a larger score comes.
// x: [S * SEQUENCES, rows, 3 * HEADS * D], q, k and v side by side; extent: rows of
// a sequence, then for each of S solutions how many of them are frames → y: [S *
// SEQUENCES, rows, HEADS * D], zeros in rows that are no frames
// A group takes 64 queries of a head, 16 to a SIMD group. Values are what tiles
// read by columns: they go through threadgroup memory, transposed, in two places
// by turns, so that one barrier a step is enough.
// Reference: reference::full_attention.
//
// inputs: x extent
// outputs: y
#include "tiles.h"

// Weights are a tile's sums before they are a tile's rows: a lane has keys 8 * i +
// 2 * quarter and the one beside it in its i-th pair. Values stand in that order.
METAL_FUNC int key_position(int key) {
  return 8 * (key % 8 / 2) + 2 * (key / 8) + key % 2;
}

// A part of one key's value becomes a part of eight rows of keys.
METAL_FUNC void leave_value(uint4 part, int key, int dim, threadgroup uint4* values) {
  auto at = (threadgroup ushort*)values + dim * 32 + key_position(key);
  uint pairs[4];
  pairs[0] = part.x;
  pairs[1] = part.y;
  pairs[2] = part.z;
  pairs[3] = part.w;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    at[64 * i] = ushort(pairs[i] & 0xffffu);
    at[64 * i + 32] = ushort(pairs[i] >> 16);
  }
}

METAL_FUNC float tile_row_max(float v) {
  v = max(v, simd_shuffle_xor(v, 1));
  return max(v, simd_shuffle_xor(v, tile_far_lane()));
}

// A lane's weights of one row, made of its scores, and what the sums before them
// are scaled by.
template <typename T>
METAL_FUNC uint4 weigh(
    thread float (*scores)[4], int upper_or_lower, thread float& largest, thread float& total,
    thread float& scale) {
  int e = 2 * upper_or_lower;
  float most = largest;
#pragma unroll
  for (int j = 0; j < 4; ++j) most = max(most, max(scores[j][e], scores[j][e + 1]));
  most = tile_row_max(most);
  scale = precise::exp(largest - most);
  largest = most;
  total *= scale;
  uint pairs[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float a = precise::exp(scores[j][e] - most), b = precise::exp(scores[j][e + 1] - most);
    total += a + b;
    pairs[j] = half_bits<T>(a, b);
  }
  uint4 weights;
  weights.x = pairs[0];
  weights.y = pairs[1];
  weights.z = pairs[2];
  weights.w = pairs[3];
  return weights;
}

// A lane's parts of 32 keys from `begin` on; those beyond the last are the last.
template <int CHUNKS, int STRIDE, typename T>
METAL_FUNC void load_keys(
    const device T* k, int begin, int frames, uint lane, thread uint4* parts) {
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    int row = min(begin + 8 * j + tile_row(lane), frames - 1);
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      parts[j * CHUNKS + c] = tile_part(k + (row * STRIDE + 32 * c), tile_quarter(lane));
    }
  }
}

// A thread's parts of their values.
template <int COUNT, int THREADS, int STRIDE, typename T>
METAL_FUNC void load_values(
    const device T* v, int begin, int frames, int index, thread uint4* parts) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    int item = i * THREADS + index;
    parts[i] = tile_part(v + min(begin + item % 32, frames - 1) * STRIDE, item / 32);
  }
}

//: kernel
constexpr int SIMDS = THREADS / 32, BLOCKS = 4; // of 16 queries
constexpr int C = HEADS * D, STRIDE = 3 * C;
constexpr int CHUNKS = D / 32, TILES = D / 8; // of a head: by 32 and by 8
constexpr int COUNT = 32 * TILES / THREADS; // parts of values, of a thread
threadgroup uint4 values[2 * 4 * D];
uint lane = thread_index_in_simdgroup;
int index = int(thread_index_in_threadgroup), sequence = int(threadgroup_position_in_grid.z);
int rows = extent[0], frames = extent[1 + sequence / SEQUENCES];
int row = tile_row(lane), quarter = tile_quarter(lane), head = int(threadgroup_position_in_grid.y);
long batch = long(sequence) * rows;
int group = int(threadgroup_position_in_grid.x) * BLOCKS * 16;
if (group >= frames) {
  float zeros[2];
  zeros[0] = zeros[1] = 0.0f;
  for (int i = index; i < min(rows - group, BLOCKS * 16) * (D / 2); i += THREADS)
    store_pair(y + ((batch + group + i / (D / 2)) * C + head * D + i % (D / 2) * 2), zeros);
  return;
}
auto q = x + (batch * STRIDE + head * D);
auto k = q + C;
auto v = k + C;
float by = 1.0f / precise::sqrt(float(D));

for (int block = 0; block < BLOCKS; block += SIMDS) {
  int first = group + (block + int(simdgroup_index_in_threadgroup)) * 16;
  uint4 top[CHUNKS], bottom[CHUNKS], keys[4 * CHUNKS], next_keys[4 * CHUNKS], held[COUNT];
#pragma unroll
  for (int c = 0; c < CHUNKS; ++c) {
    top[c] = tile_part(q + (min(first + row, frames - 1) * STRIDE + 32 * c), quarter);
    bottom[c] = tile_part(q + (min(first + row + 8, frames - 1) * STRIDE + 32 * c), quarter);
  }
  load_keys<CHUNKS, STRIDE>(k, 0, frames, lane, keys);
  load_values<COUNT, THREADS, STRIDE>(v, 0, frames, index, held);
  float out[TILES][4], largest[2], total[2], scale[2];
  clear_sums<TILES>(out);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    largest[h] = -INFINITY;
    total[h] = 0.0f;
  }
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    int item = i * THREADS + index;
    leave_value(held[i], item % 32, item / 32 * 8, values);
  }
  int side = 0;
  for (int begin = 0; begin < frames; begin += 32) {
    bool more = begin + 32 < frames;
    if (more) {
      load_keys<CHUNKS, STRIDE>(k, begin + 32, frames, lane, next_keys);
      load_values<COUNT, THREADS, STRIDE>(v, begin + 32, frames, index, held);
    }
    float scores[4][4];
    clear_sums<4>(scores);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        multiply_tiles<T>(top[c], bottom[c], keys[j * CHUNKS + c], lane, scores[j]);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        bool real = begin + 8 * j + 2 * quarter + e % 2 < frames;
        scores[j][e] = real ? scores[j][e] * by : -INFINITY;
      }
    }
    uint4 upper = weigh<T>(scores, 0, largest[0], total[0], scale[0]);
    uint4 lower = weigh<T>(scores, 1, largest[1], total[1], scale[1]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
    for (int j = 0; j < TILES; ++j) {
#pragma unroll
      for (int e = 0; e < 4; ++e) out[j][e] *= scale[e / 2];
      multiply_tiles<T>(
          upper, lower, values[(side * D + 8 * j + row) * 4 + quarter], lane, out[j]);
    }
    side = 1 - side;
    if (more) {
#pragma unroll
      for (int i = 0; i < COUNT; ++i) {
        int item = i * THREADS + index;
        leave_value(held[i], item % 32, item / 32 * 8, values + side * D * 4);
      }
#pragma unroll
      for (int i = 0; i < 4 * CHUNKS; ++i) keys[i] = next_keys[i];
    }
  }
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int query = first + row + 8 * h;
    float sum = tile_row_sum(total[h]);
#pragma unroll
    for (int j = 0; j < TILES; ++j) {
      float pair[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) pair[e] = query < frames ? out[j][2 * h + e] / sum : 0.0f;
      if (query < rows) store_pair(y + ((batch + query) * C + head * D + 8 * j + 2 * quarter), pair);
    }
  }
  if (block + SIMDS < BLOCKS) threadgroup_barrier(mem_flags::mem_threadgroup);
}
