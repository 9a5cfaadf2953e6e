#pragma once

#include "nightingale/ops/matrix.h"

// Matrices in codes as the CPU reads them: tiles of kCodeTile rows one after
// the other (code_loops.h), [tiles, groups, code_group_bytes(bits)] uint8; the
// last tile is filled up with rows of zeros.

namespace nightingale::cpu {

// The codes nearest to `w`, [N, K] floats that are evaluated.
mx::array encode_matrix(const mx::array& w, int bits);

// Codes that are there already, evaluated and row-major; scales and biases are
// float16.
mx::array pack_codes(const ops::Codes& codes, int bits);

// What pack_codes was given.
ops::Codes unpack_codes(const mx::array& packed, int rows, int bits);

} // namespace nightingale::cpu
