// Products of matrices by a SIMD group: 16 rows of x with 8 rows of w over 32
// columns of both, numbers of 16 bits, sums in float32. What differs between GPUs
// is behind multiply_tiles, tile_row, tile_quarter and tile_far_lane.
//
// A lane stands for one row of eight (tile_row) and one quarter of the columns
// (tile_quarter). It holds the eight neighbours of its quarter in its row, 16
// bytes, of x also those eight rows below. Which of the 32 columns the GPU
// multiplies in which order is its own affair, as long as it is the same for
// both. A lane's four sums stand in columns 2 * quarter and 2 * quarter + 1, of
// its row and of the row eight below.
//
// Tiles stand four side by side, and share out 32 rows of w so that a lane's
// sums of them are of eight neighbours (tile_column): then it takes and leaves
// 16 bytes of a result at once.
#include "quads.h"

// Which of the rows of w is row `row` of a tile.
METAL_FUNC int tile_column(int tile, int row) {
  return 32 * (tile / 4) + 8 * (row / 2) + 2 * (tile % 4) + row % 2;
}

// Sum i of eight neighbours, of the upper or the lower of a lane's two rows.
METAL_FUNC float octet(thread const float (*sums)[4], int block, int lower, int i) {
  return sums[4 * block + i / 2][2 * lower + i % 2];
}

// A lane's part of a row of 32 columns. Addresses are multiples of 16 bytes.
template <typename T> METAL_FUNC uint4 tile_part(const device T* row, int quarter) {
  return *(const device uint4*)(row + 8 * quarter);
}

// The sum of a row's four lanes, in all of them.
METAL_FUNC float tile_row_sum(float v) {
  v += simd_shuffle_xor(v, 1);
  return v + simd_shuffle_xor(v, tile_far_lane());
}

// A patch: 16 * ROWS rows of x with 8 * COLUMNS rows of w. A step of it is 32 *
// DEPTH columns, held in registers: those of the next are loaded while one is
// multiplied. There is no other buffer, and nothing waits at a barrier.
template <int ROWS, int COLUMNS, int DEPTH> struct PatchStep {
  uint4 top[DEPTH][ROWS], bottom[DEPTH][ROWS], columns[DEPTH][COLUMNS];
};

// Rows of K numbers, of which there are `rows`: those beyond are read as the last.
template <int K, typename T> struct PlainRows {
  const device T* x;
  int rows;

  METAL_FUNC uint4 part(int row, int column, int quarter) const thread {
    return tile_part(x + (min(row, rows - 1) * K + column), quarter);
  }
};

template <int K, typename T> METAL_FUNC PlainRows<K, T> plain_rows(const device T* x, int rows) {
  PlainRows<K, T> plain;
  plain.x = x;
  plain.rows = rows;
  return plain;
}

// sums += x · wᵀ over K columns, where x is the rows from `top` on. w: [.., STRIDE],
// from the patch's first row and the first of its columns on.
template <int ROWS, int COLUMNS, int DEPTH, int K, int STRIDE = K> struct Patch {
  template <typename X, typename T>
  static METAL_FUNC void load(
      X x, const device T* w, int top, int k, uint lane,
      thread PatchStep<ROWS, COLUMNS, DEPTH>& step) {
    int row = top + tile_row(lane), quarter = tile_quarter(lane);
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
      int at = k + 32 * d;
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        step.top[d][i] = x.part(row + 16 * i, at, quarter);
        step.bottom[d][i] = x.part(row + 16 * i + 8, at, quarter);
      }
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) {
        step.columns[d][j] = tile_part(w + (tile_column(j, tile_row(lane)) * STRIDE + at), quarter);
      }
    }
  }

  template <typename T>
  static METAL_FUNC void multiply(
      thread const PatchStep<ROWS, COLUMNS, DEPTH>& step, uint lane,
      thread float (*sums)[COLUMNS][4]) {
#pragma unroll
    for (int d = 0; d < DEPTH; ++d) {
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
#pragma unroll
        for (int j = 0; j < COLUMNS; ++j) {
          multiply_tiles<T>(
              step.top[d][i], step.bottom[d][i], step.columns[d][j], lane, sums[i][j]);
        }
      }
    }
  }

  template <typename X, typename T>
  static METAL_FUNC void add_product(
      X x, const device T* w, int top, uint lane, thread float (*sums)[COLUMNS][4]) {
    PatchStep<ROWS, COLUMNS, DEPTH> now, next;
    load(x, w, top, 0, lane, now);
#pragma unroll 2
    for (int k = 0; k < K; k += 32 * DEPTH) {
      if (k + 32 * DEPTH < K) load(x, w, top, k + 32 * DEPTH, lane, next);
      multiply<T>(now, lane, sums);
      now = next;
    }
  }
};

template <int COUNT> METAL_FUNC void clear_sums(thread float (*sums)[4]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) sums[i][e] = 0.0f;
  }
}

// TOTAL rows that the SIMD groups of a threadgroup share: the threads load a
// step of them, 32 * DEPTH columns, and leave it in threadgroup memory, 32
// columns of all rows, then the next 32. There each lane finds its parts
// without a conflict. A step is PARTS parts, of which a thread holds HELD.
template <int TOTAL, int DEPTH, int THREADS> struct SharedStep {
  enum : int { PARTS = TOTAL * 4 * DEPTH, HELD = (PARTS + THREADS - 1) / THREADS };

  template <typename X>
  static METAL_FUNC void load(X x, int top, int k, int index, thread uint4* held) {
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
      int item = i * THREADS + index, part = item % (4 * DEPTH);
      if (PARTS % THREADS == 0 || item < PARTS)
        held[i] = x.part(top + item / (4 * DEPTH), k + part / 4 * 32, part % 4);
    }
  }

  static METAL_FUNC void leave(thread const uint4* held, int index, threadgroup uint4* step) {
#pragma unroll
    for (int i = 0; i < HELD; ++i) {
      int item = i * THREADS + index, part = item % (4 * DEPTH);
      if (PARTS % THREADS == 0 || item < PARTS)
        step[(part / 4 * TOTAL + item / (4 * DEPTH)) * 4 + part % 4] = held[i];
    }
  }

  static METAL_FUNC uint4 part(threadgroup const uint4* step, int row, int depth, int quarter) {
    return step[(depth * TOTAL + row) * 4 + quarter];
  }
};

// Eight neighbours, at an address that is a multiple of their size together.
template <typename T> METAL_FUNC void load_octet(const device T* p, thread float* v) {
  load4(p, v);
  load4(p + 4, v + 4);
}

METAL_FUNC void store_octet(device float* p, thread const float* v) {
  store4(p, v);
  store4(p + 4, v + 4);
}

template <typename T> METAL_FUNC uint4 octet_bits(thread const float* v) {
  uint4 bits;
  bits.x = half_bits<T>(v[0], v[1]);
  bits.y = half_bits<T>(v[2], v[3]);
  bits.z = half_bits<T>(v[4], v[5]);
  bits.w = half_bits<T>(v[6], v[7]);
  return bits;
}

template <typename T> METAL_FUNC void store_octet(device T* p, thread const float* v) {
  *(device uint4*)p = octet_bits<T>(v);
}
