// normal_noise: unit normal draws, each a function of its row's number and its
// column. key: the branch of the generator that seed, stage and sentence give;
// window: the number of the first row, and the columns → y: [rows, columns].
// One block of the generator makes two words, half a row apart: a thread takes
// both. Reference: reference::normal_noise.
//
// inputs: key window extent
// outputs: y
#include "threefry.h"

// The inverse of erf: a times a polynomial in log(1 - a²), one for its middle
// and one for its tails. The middle of one of 2^23 equal parts of (-1, 1) goes
// in.
METAL_FUNC float normal_of(uint word) {
  float a = (float(word >> 9) + 0.5f) * 2.3841858e-07f - 1.0f;
  float t = precise::log((1.0f - a) * (1.0f + a)), p;
  if (t > -6.125f) {
    p = 5.43877832e-9f;
    p = fma(p, t, 1.43285448e-7f);
    p = fma(p, t, 1.22774793e-6f);
    p = fma(p, t, 1.12963626e-7f);
    p = fma(p, t, -5.61530760e-5f);
    p = fma(p, t, -1.47697632e-4f);
    p = fma(p, t, 2.31468678e-3f);
    p = fma(p, t, 1.15392581e-2f);
    p = fma(p, t, -2.32015476e-1f);
    p = fma(p, t, 8.86226892e-1f);
  } else {
    p = 3.03697567e-10f;
    p = fma(p, t, 2.93243101e-8f);
    p = fma(p, t, 1.22150334e-6f);
    p = fma(p, t, 2.84108955e-5f);
    p = fma(p, t, 3.93552968e-4f);
    p = fma(p, t, 3.02698812e-3f);
    p = fma(p, t, 4.83185798e-3f);
    p = fma(p, t, -2.64646143e-1f);
    p = fma(p, t, 8.40016484e-1f);
  }
  return a * p * 1.41421356f;
}

//: kernel
constexpr int CHUNK = 1024; // pairs of a group
int first = window[0], columns = window[1], half_row = columns / 2, odd = columns % 2;
int pairs = half_row + odd, size = extent[0] * pairs;
int begin = int(threadgroup_position_in_grid.x) * CHUNK, end = min(begin + CHUNK, size);
for (int i = begin + int(thread_index_in_threadgroup); i < end; i += THREADS) {
  int row = i / pairs, column = i - row * pairs;
  uint low = uint(first + row), high = 0;
  threefry(uint(key[0]), uint(key[1]), low, high);
  // An odd middle word stands alone.
  bool alone = column == half_row;
  uint a = uint(column), b = alone ? 0u : uint(column + pairs);
  threefry(low, high, a, b);
  y[row * columns + column] = normal_of(a);
  if (!alone) y[row * columns + column + pairs] = normal_of(b);
}
