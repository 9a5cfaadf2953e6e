// sin²(x), to 4e-7: of what is left of x once it is less a multiple of pi, which
// has the same square. A fifth of the code that precise::sin is, for x of thousands.
METAL_FUNC float sine_square(float x) {
  float turns = rint(x * 0.318309886f);
  float r = fma(turns, 8.74227766e-8f, fma(turns, -3.14159274f, x));
  float u = r * r;
  float p = -2.50521084e-8f;
  p = fma(p, u, 2.75573192e-6f);
  p = fma(p, u, -1.98412698e-4f);
  p = fma(p, u, 8.33333333e-3f);
  p = fma(p, u, -0.166666667f);
  float sine = fma(p * u, r, r);
  return sine * sine;
}

// x + sin²(alpha * x) / alpha.
METAL_FUNC float snake(float x, float alpha) {
  return x + sine_square(alpha * x) / (alpha + 1e-9f);
}
