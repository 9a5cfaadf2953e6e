#pragma once

#include <optional>
#include <vector>

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/product.h"

namespace nightingale::cpu {

// Loops for bfloat16 that this processor has and the system lets this process
// use, best first.
const std::vector<const MatrixLoops*>& matrix_loops();

// Whether there are any.
bool has_bf16_matrix_units();

// The name of the best, or "".
const char* bf16_name();

// Whether they multiply faster than integers of 8 bits are multiplied: tiles
// do, vectors do not.
bool has_bf16_tiles();

// product() of bfloat16 numbers, whose sums are float32. Needs the units.
void matrix_product(
    const Windows<uint16_t>& x,
    const uint16_t* w,
    int columns,
    const EpilogueWriter& epilogue);

// The same with a quantized matrix, dequantized panel by panel.
void matrix_product(
    const Windows<uint16_t>& x,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue);

// A matrix as the units multiply it: bfloat16 rows or quantized weights, whose
// depth is a multiple of kMatrixTile, packed once for the rows of an op.
struct PanelWeights {
  const uint16_t* rows; // or null
  std::optional<PackedQuantized> quantized;
  int columns;
  int depth;

  // w: [columns, depth], bfloat16 or packed
  PanelWeights(const mx::array& w, int columns, int depth, int bits);

  int64_t packed_numbers() const;
  void pack(uint16_t* packed) const;
};

// Whether linear() of bfloat16 rows and these weights runs on the units, for
// more than kDotRows rows, and PanelWeights can have them.
bool can_pack_panels(const ops::Matrix& w);

// `rows` rows of x by packed weights, on the calling thread.
// x: [rows, row_stride]
void multiply_panels(
    const uint16_t* x,
    int64_t row_stride,
    int rows,
    const PanelWeights& w,
    const uint16_t* packed,
    const EpilogueWriter& epilogue);

// full_attention of bfloat16 arrays whose last axis is contiguous, for heads of
// a size that can_use_matrix_attention.
bool can_use_matrix_attention(int head_dim);
void matrix_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::array& out);

} // namespace nightingale::cpu
