// A row of C numbers in the registers of a SIMD group, (C + 31) / 32 to a lane:
// fours of neighbours where C is a multiple of 128, else every 32nd.
#include "quads.h"

// The column that a lane's value `i` stands in.
template <int C> METAL_FUNC int column(int lane, int i) {
  return C % 128 == 0 ? (i / 4 * 32 + lane) * 4 + i % 4 : i * 32 + lane;
}

// Rows are at addresses that four elements divide; vectors of weights anywhere.
template <int C, typename T>
METAL_FUNC void load_row(const device T* row, int lane, thread float* v) {
  constexpr int WIDTH = C % 128 == 0 ? 4 : 1;
  for (int i = 0; i < (C + 31) / 32; i += WIDTH) {
    int c = column<C>(lane, i);
    if (c < C) load<WIDTH>(row + c, v + i);
  }
}

template <int C, typename T>
METAL_FUNC void store_row(device T* row, int lane, thread const float* v) {
  constexpr int WIDTH = C % 128 == 0 ? 4 : 1;
  for (int i = 0; i < (C + 31) / 32; i += WIDTH) {
    int c = column<C>(lane, i);
    if (c < C) store<WIDTH>(row + c, v + i);
  }
}

template <int C, typename T>
METAL_FUNC void add_weights(const device T* w, int lane, thread float* v) {
  for (int i = 0; i < (C + 31) / 32; ++i) {
    int c = column<C>(lane, i);
    if (c < C) v[i] += float(w[c]);
  }
}

// v becomes layer_norm(v, w, b): the mean first, then the squares about it.
template <int C, typename W, typename B>
METAL_FUNC void norm_row(
    const device W* w, const device B* b, float eps, int lane, thread float* v) {
  constexpr int N = (C + 31) / 32;
  float sum = 0.0f;
  for (int i = 0; i < N; ++i) sum += column<C>(lane, i) < C ? v[i] : 0.0f;
  float mean = simd_sum(sum) / C;
  sum = 0.0f;
  for (int i = 0; i < N; ++i) {
    float d = column<C>(lane, i) < C ? v[i] - mean : 0.0f;
    sum = fma(d, d, sum);
  }
  float scale = precise::rsqrt(simd_sum(sum) / C + eps);
  for (int i = 0; i < N; ++i) {
    int c = column<C>(lane, i);
    if (c < C) v[i] = fma((v[i] - mean) * scale, float(w[c]), float(b[c]));
  }
}
