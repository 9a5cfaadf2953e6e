#pragma once

#include "nightingale/io/tensor_file.h"
#include "nightingale/ops/backend.h"

namespace nightingale {

// The bits of the codes that flow and vocoder run in on `s` where a model is
// loaded with `bits`; 0 where they stay in floats. The CPU alone runs them from
// codes, 8 bits also where T3 has 4, and where their file holds any.
int s3gen_bits(const TensorFile& file, int bits, mx::Stream s);

} // namespace nightingale
