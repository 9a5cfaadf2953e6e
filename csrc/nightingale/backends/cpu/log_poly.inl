// log for a vector type that has split(): a polynomial about 1, within 2 ulp of
// exact for positive normal numbers; others give no meaningful result. Included
// by the vector headers, inside their namespace.

inline Vec log_vec(Vec x) {
  auto [mantissa, exponent] = split(x); // mantissa in [1, 2)
  Vec root = Vec::set1(1.41421356f), one = Vec::set1(1.0f);
  Vec half = mantissa * Vec::set1(0.5f);
  Vec m = where_greater(mantissa, root, half, mantissa) - one;
  Vec n = where_greater(mantissa, root, exponent + one, exponent);
  Vec p = Vec::set1(7.0376836292e-2f);
  p = fma(p, m, Vec::set1(-1.1514610310e-1f));
  p = fma(p, m, Vec::set1(1.1676998740e-1f));
  p = fma(p, m, Vec::set1(-1.2420140846e-1f));
  p = fma(p, m, Vec::set1(1.4249322787e-1f));
  p = fma(p, m, Vec::set1(-1.6668057665e-1f));
  p = fma(p, m, Vec::set1(2.0000714765e-1f));
  p = fma(p, m, Vec::set1(-2.4999993993e-1f));
  p = fma(p, m, Vec::set1(3.3333331174e-1f));
  Vec square = m * m;
  Vec y = fma(p * m, square, n * Vec::set1(-2.12194440e-4f));
  y = fma(square, Vec::set1(-0.5f), y);
  return fma(n, Vec::set1(0.693359375f), m + y);
}
