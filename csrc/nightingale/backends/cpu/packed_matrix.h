#pragma once

#include "nightingale/backends/cpu/primitive.h"

// Quantized matrices as the CPU reads them: tiles of kQuantizedTile rows one
// after the other (quantized_loops.h), [tiles, groups,
// quantized_group_bytes(bits)] uint8; the last tile is padded with rows of
// zeros.

namespace nightingale::cpu {

// A packed matrix while an op runs.
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

// Dequantizes rows [first, first + count): [count, depth]
void decode_rows(const PackedQuantized& w, int first, int count, float* rows);

// A uint8 array, still to be written, for packed weights. Arrays lie one after
// the other in large blocks of huge pages, as the weights of a checkpoint do: a
// token streams through all of them, 20 % faster than through small pages. A
// block is freed with its last array.
mx::array packed_memory(const mx::Shape& shape);

} // namespace nightingale::cpu
