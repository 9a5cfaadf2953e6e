// tile_attention: full attention over frames. Every head's softmax(q · kᵀ /
// sqrt(D)) · v, 32 keys at a time, so that scores stay in registers: what was
// summed before is scaled down when a larger score comes.
// x: [S * SEQUENCES, rows, 3 * HEADS * D], q, k and v side by side; extent: rows of
// a sequence, then for each of S solutions how many of them are frames → y: [S *
// SEQUENCES, rows, HEADS * D], zeros in rows that are no frames
// A group takes 128 queries of a head, 32 to a SIMD group. Keys and
// values are double-buffered in threadgroup memory, so that one barrier a step is
// enough; values, which tiles read by columns, are transposed there.
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

// Less than any score, and small enough that its power of two is zero.
#define LEAST_SCORE -1e30f

METAL_FUNC float tile_row_max(float v) {
  v = max(v, simd_shuffle_xor(v, 1));
  return max(v, simd_shuffle_xor(v, tile_far_lane()));
}

// A lane's weights of one row, powers of two of its scores times `by`, and what the
// sums before them are scaled by.
template <typename T>
METAL_FUNC uint4 weigh(
    thread float (*scores)[4], int upper_or_lower, float by, thread float& largest,
    thread float& total, thread float& scale) {
  int e = 2 * upper_or_lower;
  float most = LEAST_SCORE;
#pragma unroll
  for (int j = 0; j < 4; ++j) most = max(most, max(scores[j][e], scores[j][e + 1]));
  most = max(largest, by * tile_row_max(most));
  scale = fast::exp2(largest - most);
  largest = most;
  total *= scale;
  uint pairs[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    float a = fast::exp2(fma(scores[j][e], by, -most));
    float b = fast::exp2(fma(scores[j][e + 1], by, -most));
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

// A thread's parts of 32 keys or values from `begin` on; those beyond the last are
// the last. Part i is of row i % 32, of its columns from i / 32 * 8 on.
template <int COUNT, int THREADS, int STRIDE, typename T>
METAL_FUNC void load_parts(
    const device T* rows, int begin, int frames, int index, thread uint4* parts) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    int item = i * THREADS + index;
    parts[i] = tile_part(rows + min(begin + item % 32, frames - 1) * STRIDE, item / 32);
  }
}

// Keys lie as tiles read them: 32 columns of all of them, then the next 32.
template <int COUNT, int THREADS>
METAL_FUNC void leave_parts(
    thread const uint4* key_parts, thread const uint4* value_parts, int index,
    threadgroup uint4* keys, threadgroup uint4* values) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
    int item = i * THREADS + index, key = item % 32, part = item / 32;
    keys[(part / 4 * 32 + key) * 4 + part % 4] = key_parts[i];
    leave_value(value_parts[i], key, part * 8, values);
  }
}

//: kernel
constexpr int ROWS = 2, QUERIES = 16 * ROWS; // of a block
constexpr int SIMDS = THREADS / 32, BLOCKS = 4;
constexpr int C = HEADS * D, STRIDE = 3 * C;
constexpr int CHUNKS = D / 32, TILES = D / 8; // of a head: by 32 and by 8
constexpr int COUNT = 32 * TILES / THREADS; // parts of keys or values, of a thread
threadgroup uint4 keys[2 * 4 * D], values[2 * 4 * D];
uint lane = thread_index_in_simdgroup;
int index = int(thread_index_in_threadgroup), sequence = int(threadgroup_position_in_grid.z);
int rows = extent[0], frames = extent[1 + sequence / SEQUENCES];
int row = tile_row(lane), quarter = tile_quarter(lane), head = int(threadgroup_position_in_grid.y);
long batch = long(sequence) * rows;
int group = int(threadgroup_position_in_grid.x) * BLOCKS * QUERIES;
if (group >= frames) {
  uint4 zeros;
  zeros.x = zeros.y = zeros.z = zeros.w = 0u;
  for (int i = index; i < min(rows - group, BLOCKS * QUERIES) * TILES; i += THREADS)
    *(device uint4*)(y + ((batch + group + i / TILES) * C + head * D + i % TILES * 8)) = zeros;
  return;
}
auto q = x + (batch * STRIDE + head * D);
auto k = q + C;
auto v = k + C;
float by = 1.44269504f / precise::sqrt(float(D)); // to powers of two

for (int block = 0; block < BLOCKS; block += SIMDS) {
  int first = group + (block + int(simdgroup_index_in_threadgroup)) * QUERIES;
  uint4 top[ROWS][CHUNKS], bottom[ROWS][CHUNKS], next_keys[COUNT], next_values[COUNT];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    int query = first + 16 * r + row;
#pragma unroll
    for (int c = 0; c < CHUNKS; ++c) {
      top[r][c] = tile_part(q + (min(query, frames - 1) * STRIDE + 32 * c), quarter);
      bottom[r][c] = tile_part(q + (min(query + 8, frames - 1) * STRIDE + 32 * c), quarter);
    }
  }
  load_parts<COUNT, THREADS, STRIDE>(k, 0, frames, index, next_keys);
  load_parts<COUNT, THREADS, STRIDE>(v, 0, frames, index, next_values);
  float out[ROWS][TILES][4], largest[2 * ROWS], total[2 * ROWS], scale[2 * ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) clear_sums<TILES>(out[r]);
#pragma unroll
  for (int h = 0; h < 2 * ROWS; ++h) {
    largest[h] = LEAST_SCORE;
    total[h] = 0.0f;
  }
  leave_parts<COUNT, THREADS>(next_keys, next_values, index, keys, values);
  int side = 0;
  for (int begin = 0; begin < frames; begin += 32) {
    bool more = begin + 32 < frames;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (more) {
      load_parts<COUNT, THREADS, STRIDE>(k, begin + 32, frames, index, next_keys);
      load_parts<COUNT, THREADS, STRIDE>(v, begin + 32, frames, index, next_values);
    }
    float scores[ROWS][4][4];
#pragma unroll
    for (int r = 0; r < ROWS; ++r) clear_sums<4>(scores[r]);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int c = 0; c < CHUNKS; ++c) {
        uint4 part = keys[((side * CHUNKS + c) * 32 + 8 * j + row) * 4 + quarter];
#pragma unroll
        for (int r = 0; r < ROWS; ++r)
          multiply_tiles<T>(top[r][c], bottom[r][c], part, lane, scores[r][j]);
      }
    }
    if (!more) {
#pragma unroll
      for (int i = 0; i < ROWS * 16; ++i) {
        int j = i / 4 % 4, e = i % 4;
        if (begin + 8 * j + 2 * quarter + e % 2 >= frames) scores[i / 16][j][e] = LEAST_SCORE;
      }
    }
    uint4 weights[2 * ROWS];
#pragma unroll
    for (int h = 0; h < 2 * ROWS; ++h)
      weights[h] = weigh<T>(scores[h / 2], h % 2, by, largest[h], total[h], scale[h]);
#pragma unroll
    for (int j = 0; j < TILES; ++j) {
      uint4 part = values[(side * D + tile_column(j, row)) * 4 + quarter];
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out[r][j][e] *= scale[2 * r + e / 2];
        multiply_tiles<T>(weights[2 * r], weights[2 * r + 1], part, lane, out[r][j]);
      }
    }
    side = 1 - side;
    if (more) {
      leave_parts<COUNT, THREADS>(
          next_keys, next_values, index, keys + side * D * 4, values + side * D * 4);
    }
  }
#pragma unroll
  for (int h = 0; h < 2 * ROWS; ++h) {
    int query = first + row + 8 * h;
    float sum = tile_row_sum(total[h]);
    if (query >= rows) continue;
#pragma unroll
    for (int j = 0; j < TILES / 4; ++j) {
      float v[8];
#pragma unroll
      for (int e = 0; e < 8; ++e)
        v[e] = query < frames ? octet(out[h / 2], j, h % 2, e) / sum : 0.0f;
      store_octet(y + ((batch + query) * C + head * D + 32 * j + 8 * quarter), v);
    }
  }
  if (block + SIMDS < BLOCKS) threadgroup_barrier(mem_flags::mem_threadgroup);
}
