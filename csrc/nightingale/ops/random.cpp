#include "nightingale/ops/random.h"

#include <bit>

namespace nightingale {

DrawKey threefry(DrawKey key, DrawKey counter) {
  constexpr int rotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  uint32_t schedule[3] = {key.low, key.high, 0x1bd11bda ^ key.low ^ key.high};
  uint32_t a = counter.low + schedule[0];
  uint32_t b = counter.high + schedule[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : rotations[group % 2]) {
      a += b;
      b = std::rotl(b, rotation) ^ a;
    }
    a += schedule[(group + 1) % 3];
    b += schedule[(group + 2) % 3] + group + 1;
  }
  return {a, b};
}

DrawKey stage_key(const DrawPosition& at) {
  DrawKey seed{
      static_cast<uint32_t>(at.seed), static_cast<uint32_t>(at.seed >> 32)};
  return threefry(seed, {static_cast<uint32_t>(at.stage), at.sentence});
}

DrawKey draw_key(const DrawPosition& at) {
  return threefry(stage_key(at), {at.position, 0});
}

uint32_t random_word(DrawKey key, uint32_t index, uint32_t count) {
  // The words come in pairs (i, i + half); an odd count leaves one without a
  // pair.
  uint32_t half = count / 2, odd = count % 2;
  if (index < half) {
    return threefry(key, {index, index + half + odd}).low;
  }
  if (odd && index == half) {
    return threefry(key, {half, 0}).low;
  }
  return threefry(key, {index - half - odd, index}).high;
}

} // namespace nightingale
