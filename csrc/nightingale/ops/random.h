#pragma once

#include <cstdint>

// Counter-based random draws: what is drawn is a function of where it is used,
// never of how the work was cut, batched or repeated. The generator is
// Threefry-2x32 in the word order of mlx::core::random::bits, so that every
// backend makes the same words from the same key.

namespace nightingale {

struct DrawKey {
  uint32_t low;
  uint32_t high;
};

// What a draw is for. Part of the key: never renumber.
enum class DrawStage : uint32_t {
  speech_token = 1,
  flow_frame = 2, // of the new mel frames
  flow_prompt = 3, // of the prompt's
  source_phase = 4,
  source_noise = 5, // by mel frame
};

// One Threefry-2x32 block (20 rounds).
DrawKey threefry(DrawKey key, DrawKey counter);

DrawKey
draw_key(uint64_t seed, DrawStage stage, uint32_t sentence, uint32_t position);

// Word `index` of the `count` words that `key` gives.
uint32_t random_word(DrawKey key, uint32_t index, uint32_t count);

} // namespace nightingale
