#pragma once

#include <functional>

#include "nightingale/ops/decoder.h"

namespace nightingale::gpu {

// Whether decoder_step below runs these: one new position, layers whose
// attention is that of nightingale/backends/gpu/decode_attention.h.
bool can_use_decoder_step(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs,
    mx::Stream s);

// Runs the layers one after the other, adds to the weights, and leaves the
// caches as it has written them.
using RunLayers = std::function<
    mx::array(const mx::array& x, std::vector<mx::array>& weights)>;

// What `layers` does. Steps that make the same launches, as those of an
// utterance do until its positions take one more part, are built once and
// repeated.
mx::array decoder_step(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs,
    int past,
    std::vector<mx::array>& weights,
    const RunLayers& layers,
    mx::Stream s);

} // namespace nightingale::gpu
