#pragma once

#include "mlx/array.h"
#include "nightingale/backends/cpu/primitive.h"

namespace nightingale::cpu {

// What a matrix in codes is while an op runs.
struct PackedQuantized {
  const uint8_t* tiles;
  int columns; // of the result
  int groups;
  int bits;

  PackedQuantized(const mx::array& packed, int columns, int bits)
      : tiles(packed.data<uint8_t>()),
        columns(columns),
        groups(packed.shape(1)),
        bits(bits) {}

  int64_t depth() const {
    return int64_t(groups) * kQuantizedGroup;
  }
  const uint8_t* tile(int index) const {
    return tiles + int64_t(index) * groups * quantized_group_bytes(bits);
  }
};

// Rows [first, first + count) of the matrix in floats: [count, depth]
void decode_rows(const PackedQuantized& w, int first, int count, float* rows);

} // namespace nightingale::cpu
