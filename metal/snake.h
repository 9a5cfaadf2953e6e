// x + sin²(alpha * x) / alpha.
METAL_FUNC float snake(float x, float alpha) {
  float sine = precise::sin(alpha * x);
  return x + sine * sine / (alpha + 1e-9f);
}
