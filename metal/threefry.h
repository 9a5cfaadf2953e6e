// Threefry-2x32 of 20 rounds and the order of its words, as ops/random.cpp has
// them.

METAL_FUNC void threefry_mix(thread uint& a, thread uint& b, uint turn) {
  a += b;
  b = ((b << turn) | (b >> (32u - turn))) ^ a;
}

METAL_FUNC void threefry_rounds(
    thread uint& a, thread uint& b, uint first, uint second, uint third, uint fourth) {
  threefry_mix(a, b, first);
  threefry_mix(a, b, second);
  threefry_mix(a, b, third);
  threefry_mix(a, b, fourth);
}

// One block: the counter (a, b) becomes two words.
METAL_FUNC void threefry(uint low, uint high, thread uint& a, thread uint& b) {
  uint mixed = 0x1bd11bdau ^ low ^ high;
  a += low;
  b += high;
  threefry_rounds(a, b, 13u, 15u, 26u, 6u);
  a += high;
  b += mixed + 1u;
  threefry_rounds(a, b, 17u, 29u, 16u, 24u);
  a += mixed;
  b += low + 2u;
  threefry_rounds(a, b, 13u, 15u, 26u, 6u);
  a += low;
  b += high + 3u;
  threefry_rounds(a, b, 17u, 29u, 16u, 24u);
  a += high;
  b += mixed + 4u;
  threefry_rounds(a, b, 13u, 15u, 26u, 6u);
  a += mixed;
  b += low + 5u;
}

// Word `index` of the `count` words that a key gives: they come in pairs
// (i, i + half), and an odd middle one stands alone.
METAL_FUNC uint random_word(uint low, uint high, uint index, uint count) {
  uint half_count = count / 2u, odd = count % 2u;
  bool second = index >= half_count + odd;
  uint a = second ? index - half_count - odd : index;
  uint b = a == half_count ? 0u : a + half_count + odd;
  threefry(low, high, a, b);
  return second ? b : a;
}
