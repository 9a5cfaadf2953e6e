#pragma once

#include <vector>

#include "nightingale/ops/sampling.h"

namespace nightingale::gpu {

// Whether ops::choose_token can be one launch.
bool can_use_sample_kernel(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    mx::Stream s);

ops::Sampler choose_token(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    ops::Sampler sampler,
    mx::Stream s);

// The rules as the kernel reads them. Made once an utterance: MLX keeps what
// the host makes in managed memory, and the first kernel to read it waits for
// its page.
mx::array pack_rules(const ops::TokenRules& rules);

} // namespace nightingale::gpu
