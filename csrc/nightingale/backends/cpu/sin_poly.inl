// sin for a vector type with a fused fma() and round(): the nearest multiple of
// pi is taken off in two parts, the first of them exactly, and a polynomial
// does the rest: within 2e-7 for |x| up to 1e4. Included by the vector headers,
// inside their namespace.

// sin(x - n * pi), n being the nearest whole number to x / pi.
inline Vec sin_near_multiple(Vec x, Vec n) {
  Vec r = fma(n, Vec::set1(-3.14159274101257f), x);
  r = fma(n, Vec::set1(8.74227800037e-8f), r);
  Vec square = r * r;
  Vec p = Vec::set1(-2.3888864e-8f);
  p = fma(p, square, Vec::set1(2.7525382e-6f));
  p = fma(p, square, Vec::set1(-1.9840868e-4f));
  p = fma(p, square, Vec::set1(8.333331e-3f));
  p = fma(p, square, Vec::set1(-1.6666667e-1f));
  return fma(p, square * r, r);
}

inline Vec multiples_of_pi(Vec x) {
  return round(x * Vec::set1(0.318309886184f));
}

inline Vec sin_vec(Vec x) {
  Vec n = multiples_of_pi(x);
  // 0 where n is even, 1 or -1 where it is odd.
  Vec odd = fma(round(n * Vec::set1(0.5f)), Vec::set1(-2.0f), n);
  return sin_near_multiple(x, n) *
      fma(odd * odd, Vec::set1(-2.0f), Vec::set1(1.0f));
}

inline Vec sin_squared_vec(Vec x) {
  Vec sine = sin_near_multiple(x, multiples_of_pi(x));
  return sine * sine;
}
