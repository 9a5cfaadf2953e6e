#pragma once

#include "nightingale/ops/matrix.h"

// Matrices in codes as the CPU reads them: tiles of kQuantizedTile rows one
// after the other (quantized_loops.h), [tiles, groups,
// quantized_group_bytes(bits)] uint8; the last tile is filled up with rows of
// zeros.

namespace nightingale::cpu {

// The codes nearest to `w`, [N, K] floats that are evaluated.
mx::array encode_matrix(const mx::array& w, int bits);

// Codes that are there already, evaluated and row-major; scales and biases are
// float16.
mx::array pack_quantized(const ops::QuantizedTensor& quantized, int bits);

// What pack_quantized was given.
ops::QuantizedTensor
unpack_quantized(const mx::array& packed, int rows, int bits);

} // namespace nightingale::cpu
