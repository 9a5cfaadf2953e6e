// Channel `c` of a head of 64, with ROTARY turned by its angle: pairs are (i, i +
// 32). frequencies: [32], radians per position.
template <typename T, typename F>
METAL_FUNC float turned(const device T* head, const device F* frequencies, int position, int c) {
#if ROTARY
  int i = c % 32;
  float angle = float(position) * frequencies[i];
  float a = float(head[i]), b = float(head[i + 32]);
  float cosine = precise::cos(angle), sine = precise::sin(angle);
  return c < 32 ? a * cosine - b * sine : b * cosine + a * sine;
#else
  return float(head[c]);
#endif
}
