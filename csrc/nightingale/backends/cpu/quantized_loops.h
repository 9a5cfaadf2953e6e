#pragma once

#include <cstdint>

// The inner loops of products with matrices quantized to 8 or 4 bits. A row is
// converted to integers of 16 or 8 bits, whose products with the weights are
// added up exactly; only the sums of whole groups are floating, and they are
// added from the first group to the last, each step rounded once. So a result
// has the same bits whatever stands beside it and whichever processor computes
// it.

namespace nightingale::cpu {

// Columns that share a scale and a bias.
constexpr int kQuantizedGroup = 64;

// Rows of a matrix that are packed together: two of the widest vectors.
constexpr int kQuantizedTile = 32;

// A packed tile is a run of groups. Each holds blocks of four columns, four
// bytes of every row beside each other, and then the rows' scales and their
// biases in float16. The four are in the order of kQuantizedOrder: the lower
// bytes of 16 bits and the upper ones are then of neighbouring columns. 4-bit
// values share their bytes with those of 32 columns further on, which are in
// the upper halves.
constexpr int kQuantizedOrder[4] = {0, 2, 1, 3};

constexpr int quantized_index(int bits) {
  return bits == 8 ? 0 : 1;
}
constexpr int quantized_bytes(int bits) {
  return kQuantizedTile * kQuantizedGroup * bits / 8;
}
constexpr int quantized_group_bytes(int bits) {
  return quantized_bytes(bits) +
      2 * kQuantizedTile * static_cast<int>(sizeof(uint16_t));
}

// Rows as integers: x is near scale * integer within each group. |integer| is
// at most 127 * 256 in 16 bits, so that a group's sum of products stays below
// 2^30, and 127 in 8 bits.
constexpr float quantized_limit(int row_bits) {
  return row_bits == 16 ? 32512.0f : 127.0f;
}

constexpr int row_index(int row_bits) {
  return row_bits == 16 ? 0 : 1;
}

struct QuantizedRows {
  const int16_t* integers; // [rows, groups * kQuantizedGroup]
  const float* scales; // [rows, groups]
  const float* sums; // [rows, groups], scale * sum of the integers
  int rows;
  int groups;
  int bits = 16; // of the integers
  // Under several taps a row takes `groups` of every one. How far apart rows
  // and taps begin, in groups:
  int taps = 1;
  int64_t row_step = groups;
  int64_t tap_step = 0;
  // The same integers as QuantizedLoops::split gives them, for loops that have
  // it.
  const int8_t* bytes = nullptr; // [rows, groups, bits / 8, kQuantizedGroup]
  const int32_t* totals = nullptr; // [rows, groups]

  QuantizedRows from_row(int row) const {
    QuantizedRows part = *this;
    int64_t groups_before = row * row_step;
    part.integers += groups_before * kQuantizedGroup;
    part.scales += groups_before;
    part.sums += groups_before;
    if (bytes) {
      part.bytes += groups_before * (bits / 8) * kQuantizedGroup;
      part.totals += groups_before;
    }
    part.rows -= row;
    return part;
  }
};

// y[r, c] = x[r] · row c of each of two tiles. They are read in turns where the
// rows are few: memory gives more to who reads in two places.
struct QuantizedTileArgs {
  QuantizedRows x;
  const uint8_t* tiles[2]; // the second may be null
  float* y[2]; // [rows, kQuantizedTile]
  int64_t y_stride;
};

struct QuantizedLoops {
  // Quantizes one row of a matrix, a byte for each weight, with scales and
  // biases in float16. False where it holds numbers too large for them, or not
  // finite.
  bool (*encode)(
      const float* w,
      int groups,
      int bits,
      uint8_t* quantized,
      uint16_t* scales,
      uint16_t* biases);

  // One row into integers of `bits`. Numbers that are not finite give scales
  // that are NaN.
  void (*to_integers)(
      const float* x,
      int groups,
      int bits,
      int16_t* integers,
      float* scales,
      float* sums);

  // Indexed by row_index. Null where tiles are multiplied by the integers.
  // Otherwise makes bytes with signs of them, four at a time in the order of
  // kQuantizedOrder. An integer of 16 bits is 256 * upper + lower: the upper
  // ones of a group come before the lower. totals: the sum of each group's
  // integers.
  void (*split[2])(
      const int16_t* integers,
      int groups,
      int8_t* bytes,
      int32_t* totals);

  // Indexed by row_index and quantized_index.
  void (*tile[2][2])(const QuantizedTileArgs& args);
};

} // namespace nightingale::cpu
