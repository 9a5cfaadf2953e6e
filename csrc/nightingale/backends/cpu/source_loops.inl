// The loops behind `SignalLoops` that make excitation and noise, part of
// simd_loops.inl.

using nightingale::DrawKey;
using nightingale::cpu::HarmonicArgs;
using nightingale::cpu::SignalLoops;

void harmonics(const HarmonicArgs& a) {
  float first[Vec::width];
  for (int i = 0; i < Vec::width; ++i) {
    first[i] = static_cast<float>(i + 1);
  }
  Vec counted = Vec::load(first), turn = Vec::set1(6.28318530717959f);
  Vec tone = Vec::set1(a.tone), level = Vec::set1(a.level);
  for (int k = 0; k < a.samples; k += Vec::width) {
    Vec sample = counted + Vec::set1(static_cast<float>(k));
    Vec sum = Vec::zero();
    for (int h = 0; h < a.harmonics; ++h) {
      Vec part = level * Vec::load(a.noise + h * a.samples + k);
      if (a.tone != 0.0f) {
        Vec cycles = Vec::set1(a.starts[h]) + sample * Vec::set1(a.steps[h]);
        part = fma(tone, sin_vec((cycles - floor(cycles)) * turn), part);
      }
      sum = fma(part, Vec::set1(a.w[h]), sum);
    }
    tanh_vec(sum + Vec::set1(a.bias)).store(a.y + k);
  }
}

using Floats = float __attribute__((vector_size(4 * Vec::width)));

template <int rotation>
inline void threefry_round(Words& a, Words& b) {
  a += b;
  b = (b << rotation | b >> (32 - rotation)) ^ a;
}

template <int r0, int r1, int r2, int r3>
inline void threefry_group(Words& a, Words& b, uint32_t key_a, uint32_t key_b) {
  threefry_round<r0>(a, b);
  threefry_round<r1>(a, b);
  threefry_round<r2>(a, b);
  threefry_round<r3>(a, b);
  a += key_a;
  b += key_b;
}

// nightingale::threefry in every lane.
inline void threefry_lanes(DrawKey key, Words& a, Words& b) {
  uint32_t third = 0x1bd11bda ^ key.low ^ key.high;
  a += key.low;
  b += key.high;
  threefry_group<13, 15, 26, 6>(a, b, key.high, third + 1);
  threefry_group<17, 29, 16, 24>(a, b, third, key.low + 2);
  threefry_group<13, 15, 26, 6>(a, b, key.low, key.high + 3);
  threefry_group<17, 29, 16, 24>(a, b, key.high, third + 4);
  threefry_group<13, 15, 26, 6>(a, b, third, key.low + 5);
}

inline void store_words(Words words, uint32_t count, uint32_t* to) {
  uint32_t whole = count < Vec::width ? count : Vec::width;
  __builtin_memcpy(to, &words, 4 * whole);
}

void random_words(DrawKey key, uint32_t count, uint32_t* words) {
  // Words i and i + half come of one block; an odd middle one stands alone.
  uint32_t half = count / 2, odd = count % 2;
  Words lanes;
  for (int i = 0; i < Vec::width; ++i) {
    lanes[i] = i;
  }
  for (uint32_t i = 0; i < half; i += Vec::width) {
    Words a = lanes + i, b = a + (half + odd);
    threefry_lanes(key, a, b);
    store_words(a, half - i, words + i);
    store_words(b, half - i, words + half + odd + i);
  }
  if (odd) {
    Words a = lanes + half, b = lanes;
    threefry_lanes(key, a, b);
    store_words(a, 1, words + half);
  }
}

// The inverse of erf for a in (-1, 1): a times a polynomial in log(1 - a²), one
// for its middle and one for its tails.
inline Vec erfinv_vec(Vec a) {
  Vec one = Vec::set1(1.0f);
  Vec t = log_vec((one - a) * (one + a));
  Vec tail = Vec::set1(3.03697567e-10f);
  tail = fma(tail, t, Vec::set1(2.93243101e-8f));
  tail = fma(tail, t, Vec::set1(1.22150334e-6f));
  tail = fma(tail, t, Vec::set1(2.84108955e-5f));
  tail = fma(tail, t, Vec::set1(3.93552968e-4f));
  tail = fma(tail, t, Vec::set1(3.02698812e-3f));
  tail = fma(tail, t, Vec::set1(4.83185798e-3f));
  tail = fma(tail, t, Vec::set1(-2.64646143e-1f));
  tail = fma(tail, t, Vec::set1(8.40016484e-1f));
  Vec middle = Vec::set1(5.43877832e-9f);
  middle = fma(middle, t, Vec::set1(1.43285448e-7f));
  middle = fma(middle, t, Vec::set1(1.22774793e-6f));
  middle = fma(middle, t, Vec::set1(1.12963626e-7f));
  middle = fma(middle, t, Vec::set1(-5.61530760e-5f));
  middle = fma(middle, t, Vec::set1(-1.47697632e-4f));
  middle = fma(middle, t, Vec::set1(2.31468678e-3f));
  middle = fma(middle, t, Vec::set1(1.15392581e-2f));
  middle = fma(middle, t, Vec::set1(-2.32015476e-1f));
  middle = fma(middle, t, Vec::set1(8.86226892e-1f));
  return a * where_greater(t, Vec::set1(-6.125f), middle, tail);
}

void normals(const uint32_t* words, int count, float* y) {
  for (int i = 0; i < count; i += Vec::width) {
    int whole = count - i < Vec::width ? count - i : Vec::width;
    Words lanes = {};
    __builtin_memcpy(&lanes, words + i, 4 * whole);
    auto parts = reinterpret_cast<SignedWords>(lanes >> 9);
    Floats numbers = __builtin_convertvector(parts, Floats);
    float uniform[Vec::width];
    __builtin_memcpy(uniform, &numbers, sizeof(uniform));
    // The middle of one of 2^23 equal parts of (-1, 1).
    Vec u = Vec::load(uniform) + Vec::set1(0.5f);
    u = u * Vec::set1(0x1p-22f) - Vec::set1(1.0f);
    (erfinv_vec(u) * Vec::set1(1.41421356237f)).store(uniform);
    __builtin_memcpy(y + i, uniform, 4 * whole);
  }
}
