#pragma once

#include "mlx/array.h"
#include "nightingale/backends/cpu/primitive.h"

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

  int64_t depth() const {
    return int64_t(groups) * kCodeGroup;
  }
  const uint8_t* tile(int index) const {
    return tiles + int64_t(index) * groups * code_group_bytes(bits);
  }
};

// Rows [first, first + count) of the matrix in floats: [count, depth]
void decode_rows(const PackedCodes& w, int first, int count, float* rows);

} // namespace nightingale::cpu
