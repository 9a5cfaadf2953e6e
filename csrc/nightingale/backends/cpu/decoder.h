#pragma once

#include "nightingale/ops/decoder.h"

namespace nightingale::cpu {

// Whether decoder_layers below runs these: few rows, matrices in codes, caches
// that drop nothing.
bool can_use_decoder_layers(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs);

// As in nightingale/ops/decoder.h, all layers as one op. The caches are written
// in place, and what is returned is what whoever reads them depends on.
mx::array decoder_layers(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs,
    const mx::array& frequencies,
    float eps,
    int past,
    std::vector<mx::array>& weights,
    mx::Stream s);

} // namespace nightingale::cpu
