#pragma once

#include <algorithm>

#include "mlx/array.h"
#include "nightingale/ops/cpu/product.h"
#include "nightingale/ops/cpu/row_tiles.h"

// Products with matrices in codes, as ops run them. Every row of a result is
// the same in any company.

namespace nightingale::cpu {

// What a matrix in codes is while an op runs.
struct PackedCodes {
  const uint8_t* tiles;
  int columns; // of the result
  int groups;
  int bits;

  PackedCodes(const mx::array& packed, int columns, int bits)
      : tiles(packed.data<uint8_t>()),
        columns(columns),
        groups(packed.shape(1)),
        bits(bits) {}

  const uint8_t* tile(int index) const {
    return tiles + int64_t(index) * groups * code_group_bytes(bits);
  }
};

// Room for rows as integers, in memory of the calling thread that is named by
// `Tag`.
template <typename Tag>
struct IntegerRows {
  int rows;
  int groups;
  int16_t* integers;
  float* scales;
  float* sums;

  IntegerRows(int rows, int groups)
      : rows(rows),
        groups(groups),
        integers(scratch<Tag, int16_t>(size_t(rows) * groups * kCodeGroup)),
        scales(scratch<Scales>(2 * size_t(rows) * groups)),
        sums(scales + int64_t(rows) * groups) {}

  // Turns `count` groups of a row, from `first` on, into integers.
  void put(int row, int first, int count, const float* x) const {
    int64_t at = int64_t(row) * groups + first;
    simd().codes.to_integers(
        x, count, integers + at * kCodeGroup, scales + at, sums + at);
  }

  // A row of zeros.
  void clear(int row) const {
    int64_t at = int64_t(row) * groups;
    std::fill_n(integers + at * kCodeGroup, groups * kCodeGroup, int16_t(0));
    std::fill_n(scales + at, groups, 0.0f);
    std::fill_n(sums + at, groups, 0.0f);
  }

  CodeRows view() const {
    return {integers, scales, sums, rows, groups};
  }

 private:
  struct Scales;
};

// Integers of rows that are used together: half of a core's second-level cache.
constexpr int64_t kCachedIntegers = 1 << 19;

// Calls run(rows, first) for blocks of the windows' rows as integers, `first`
// being the row of the result that a block begins with. row(t) gives input row
// t of all batch rows.
template <typename T, typename Row, typename Run>
void for_row_blocks(const Windows<T>& x, Row row, Run run) {
  struct BlockRows;
  int groups = x.channels / kCodeGroup;
  int64_t depth = int64_t(x.stride) * x.channels;
  int most = static_cast<int>(std::max<int64_t>(8, kCachedIntegers / depth));
  for (int b = 0; b < x.batch; ++b) {
    for (int first = 0; first < x.rows; first += most) {
      int count = std::min(most, x.rows - first);
      int source = first * x.stride - x.pad_left;
      IntegerRows<BlockRows> integers(x.span(count), groups);
      for_rows(integers.rows, [&](int i) {
        int t = source + i;
        if (t >= 0 && t < x.length) {
          integers.put(i, 0, groups, row(int64_t(b) * x.length + t));
        } else {
          integers.clear(i);
        }
      });
      CodeRows rows = integers.view();
      rows.rows = count;
      rows.taps = x.taps;
      rows.row_step = int64_t(x.stride) * groups;
      rows.tap_step = int64_t(x.dilation) * groups;
      run(rows, b * x.rows + first);
    }
  }
}

// x · wᵀ, finished; the rows of x are those of the result from `first_row` on.
void multiply(
    const CodeRows& x,
    int first_row,
    const PackedCodes& w,
    const Finish& finish);

// The same of all rows of the windows.
inline void
multiply(const Windows<float>& x, const PackedCodes& w, const Finish& finish) {
  for_row_blocks(
      x,
      [&](int64_t t) { return x.x + t * x.row_stride; },
      [&](const CodeRows& rows, int first) {
        multiply(rows, first, w, finish);
      });
}

// Columns [tile, tile + 1) * kCodeTile of silu(gate) * up, the rows of `w`
// being those of the gate and then as many of up, in whole tiles each.
// y: [x.rows, stride]
void multiply_swiglu_tile(
    const CodeRows& x,
    const PackedCodes& w,
    int tile,
    float* y,
    int64_t stride);

} // namespace nightingale::cpu
