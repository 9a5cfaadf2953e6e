#pragma once

#include <cstdint>

// Counter-based random numbers: a draw is a function of its position, whatever
// the chunking, batching or backend. The generator is Threefry-2x32 in the word
// order of mlx::core::random::bits, so that every backend draws the same words
// from the same key.

namespace nightingale {

struct DrawKey {
  uint32_t low;
  uint32_t high;
};

// What a draw is for. Part of the key: never renumber.
enum class DrawStage : uint32_t {
  speech_token = 1,
  flow_frame = 2, // of the new mel frames
  flow_prompt = 3, // of the prompt's mel frames
  source_phase = 4,
  source_noise = 5, // one position for each mel frame
};

// Where a draw is used.
struct DrawPosition {
  uint64_t seed;
  DrawStage stage;
  uint32_t sentence;
  uint32_t position = 0;
};

// One Threefry-2x32 block (20 rounds).
DrawKey threefry(DrawKey key, DrawKey counter);

// threefry(stage_key(at), {at.position, 0}).
DrawKey draw_key(const DrawPosition& at);

// The part of draw_key that is the same at every position.
DrawKey stage_key(const DrawPosition& at);

// Word `index` of the `count` words that `key` gives.
uint32_t random_word(DrawKey key, uint32_t index, uint32_t count);

} // namespace nightingale
