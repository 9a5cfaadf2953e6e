#pragma once

#include <algorithm>

#include "mlx/array.h"
#include "nightingale/ops/cpu/finish.h"
#include "nightingale/ops/cpu/row_tiles.h"
#include "nightingale/ops/cpu/scratch.h"

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

  CodeRows view() const {
    return {integers, scales, sums, rows, groups};
  }

 private:
  struct Scales;
};

// x · wᵀ, finished; the rows of x are those of the result from `first_row` on.
void multiply(
    const CodeRows& x,
    int first_row,
    const PackedCodes& w,
    const Finish& finish);

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
