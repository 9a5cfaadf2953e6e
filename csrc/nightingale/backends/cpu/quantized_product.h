#pragma once

#include <algorithm>

#include "mlx/array.h"
#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/packed_matrix.h"
#include "nightingale/backends/cpu/product.h"
#include "nightingale/backends/cpu/threads.h"

// Products with quantized matrices, as ops run them. Where integers are
// multiplied, results are batch-invariant.

namespace nightingale::cpu {

// Room for rows as integers, in memory of the calling thread that is named by
// `Tag`.
template <typename Tag>
struct IntegerRows {
  int rows;
  int groups;
  int bits;
  int16_t* integers;
  float* scales;
  float* sums;
  int8_t* bytes = nullptr;
  int32_t* totals = nullptr;

  IntegerRows(int rows, int groups, int bits)
      : rows(rows),
        groups(groups),
        bits(bits),
        integers(
            scratch<Tag, int16_t>(size_t(rows) * groups * kQuantizedGroup)),
        scales(scratch<Scales>(2 * size_t(rows) * groups)),
        sums(scales + int64_t(rows) * groups) {
    if (splitter()) {
      size_t count = size_t(rows) * groups;
      bytes = scratch<Bytes, int8_t>(count * group_bytes());
      totals = scratch<Totals, int32_t>(count);
    }
  }

  // Turns `count` groups of a row, from `first` on, into integers.
  void put(int row, int first, int count, const float* x) const {
    int64_t at = int64_t(row) * groups + first;
    simd().quantized.to_integers(
        x,
        count,
        bits,
        integers + at * kQuantizedGroup,
        scales + at,
        sums + at);
    split(at, count);
  }

  // A row of zeros.
  void clear(int row) const {
    int64_t at = int64_t(row) * groups;
    std::fill_n(
        integers + at * kQuantizedGroup, groups * kQuantizedGroup, int16_t(0));
    std::fill_n(scales + at, groups, 0.0f);
    std::fill_n(sums + at, groups, 0.0f);
    split(at, groups);
  }

  QuantizedRows view() const {
    QuantizedRows view{integers, scales, sums, rows, groups, bits};
    view.bytes = bytes;
    view.totals = totals;
    return view;
  }

 private:
  struct Scales;
  struct Bytes;
  struct Totals;

  auto splitter() const {
    return simd().quantized.split[row_index(bits)];
  }
  int group_bytes() const {
    return bits / 8 * kQuantizedGroup;
  }

  void split(int64_t at, int count) const {
    if (bytes) {
      splitter()(
          integers + at * kQuantizedGroup,
          count,
          bytes + at * group_bytes(),
          totals + at);
    }
  }
};

// Integers of rows that are used together: half of a core's second-level cache.
constexpr int64_t kCachedIntegers = 1 << 19;

// Calls run(rows, first) for blocks of the windows' rows as integers of `bits`,
// `first` being the row of the result that a block begins with. row(t) gives
// input row t of all batch rows.
template <typename T, typename Row, typename Run>
void for_row_blocks(const Windows<T>& x, int bits, Row row, Run run) {
  struct BlockRows;
  int groups = x.channels / kQuantizedGroup;
  int64_t depth = int64_t(x.stride) * x.channels;
  int most = static_cast<int>(std::max<int64_t>(8, kCachedIntegers / depth));
  for (int b = 0; b < x.batch; ++b) {
    for (int first = 0; first < x.rows; first += most) {
      int count = std::min(most, x.rows - first);
      int source = first * x.stride - x.pad_left;
      IntegerRows<BlockRows> integers(x.span(count), groups, bits);
      for_rows(integers.rows, [&](int i) {
        int t = source + i;
        if (t >= 0 && t < x.length) {
          integers.put(i, 0, groups, row(int64_t(b) * x.length + t));
        } else {
          integers.clear(i);
        }
      });
      QuantizedRows rows = integers.view();
      rows.rows = count;
      rows.taps = x.taps;
      rows.row_step = int64_t(x.stride) * groups;
      rows.tap_step = int64_t(x.dilation) * groups;
      run(rows, b * x.rows + first);
    }
  }
}

// x · wᵀ, then the epilogue; the rows of x are those of the result from
// `first_row` on.
void multiply(
    const QuantizedRows& x,
    int first_row,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue);

// Whether this processor multiplies integers of `row_bits` faster than floats,
// also for many rows. Others dequantize panels of the matrix, which few rows
// are not worth.
bool outruns_floats(int row_bits);

// The product of windows over `x`, which windows(data) gives of its numbers, as
// floats or as bfloat16. Rows become integers of `row_bits`. `batch_invariant`:
// rows of float32 are multiplied as integers even where decoding would be
// faster, so that the bits of a row depend neither on the other rows nor on the
// processor.
template <typename F>
void quantized_product(
    const mx::array& x,
    F windows,
    const PackedQuantized& w,
    int row_bits,
    const EpilogueWriter& epilogue,
    bool batch_invariant) {
  bool few = row_count(x) <= ops::kBatchInvariantRows;
  bool is_half = x.dtype() == mx::bfloat16;
  if (!few && is_half && has_bf16_matrix_units() &&
      (has_bf16_tiles() || row_bits == 16)) {
    matrix_product(windows(x.data<uint16_t>()), w, epilogue);
    return;
  }
  if (!few && !batch_invariant && !outruns_floats(row_bits)) {
    product(windows(floats_of(x)), w, epilogue);
    return;
  }
  auto rows = windows(static_cast<const float*>(nullptr)); // read one by one
  for_row_blocks(
      rows,
      row_bits,
      [&](int64_t t) {
        return read_floats(x, t * rows.row_stride, rows.channels);
      },
      [&](const QuantizedRows& block, int first) {
        multiply(block, first, w, epilogue);
      });
}

// Two tiles of a matrix, the last of which may be missing at its end, by up to
// kStripRows rows: the sums of columns [2 * strip, 2 * strip + 2) *
// kQuantizedTile, [x.rows, kStripColumns], until the calling thread asks for
// the next.
constexpr int kStripColumns = 2 * kQuantizedTile;
constexpr int kStripRows = 40;
const float*
multiply_strip(const QuantizedRows& x, const PackedQuantized& w, int strip);

// Columns [tile, tile + 1) * kQuantizedTile of silu(gate) * up, the rows of `w`
// being those of the gate and then as many of up, in whole tiles each.
// y: [x.rows, stride]
void multiply_swiglu_tile(
    const QuantizedRows& x,
    const PackedQuantized& w,
    int tile,
    float* y,
    int64_t stride);

} // namespace nightingale::cpu
