// exp for a vector type that has round() and scale_by_power_of_two(): range
// reduction by ln 2 in two parts and a polynomial, within 2 ulp of exact over
// the float32 range. Included by the vector headers, inside their namespace.

// exp(x) = 2^n * (1 + r + p * r²), within the float32 range.
struct ExpParts {
  Vec n, r, p;
};

inline ExpParts exp_parts(Vec x) {
  // The bound first: x86's max and min return the second where one is NaN.
  x = max(Vec::set1(-87.33654f), x);
  x = min(Vec::set1(88.37626f), x);
  Vec n = round(x * Vec::set1(1.44269504088896f));
  Vec r = fma(n, Vec::set1(-0.693359375f), x);
  r = fma(n, Vec::set1(2.12194440e-4f), r);
  Vec p = Vec::set1(1.9875691500e-4f);
  p = fma(p, r, Vec::set1(1.3981999507e-3f));
  p = fma(p, r, Vec::set1(8.3334519073e-3f));
  p = fma(p, r, Vec::set1(4.1665795894e-2f));
  p = fma(p, r, Vec::set1(1.6666665459e-1f));
  p = fma(p, r, Vec::set1(5.0000001201e-1f));
  return {n, r, p};
}

inline Vec exp(Vec x) {
  auto [n, r, p] = exp_parts(x);
  return scale_by_power_of_two(fma(p, r * r, r + Vec::set1(1.0f)), n);
}

// exp(x) - 1, as exact for small x as for large.
inline Vec expm1(Vec x) {
  auto [n, r, p] = exp_parts(x);
  Vec one = Vec::set1(1.0f), power = scale_by_power_of_two(one, n);
  return fma(power, fma(p, r * r, r), power - one);
}

// 2^x for x up to 0, within 2e-7 of itself; 2^-126 is the least.
inline Vec exp2_vec(Vec x) {
  x = max(Vec::set1(-126.0f), x);
  Vec n = round(x), r = x - n;
  Vec p = Vec::set1(1.32647308e-3f);
  p = fma(p, r, Vec::set1(9.67151299e-3f));
  p = fma(p, r, Vec::set1(5.55073358e-2f));
  p = fma(p, r, Vec::set1(0.240222424f));
  p = fma(p, r, Vec::set1(0.693147004f));
  p = fma(p, r, Vec::set1(1.0f));
  return scale_by_power_of_two(p, n);
}

// 2^x for x in [-126, 0], within 1e-4 of itself: finer than bfloat16.
inline Vec coarse_exp2_vec(Vec x) {
  Vec n = round(x), r = x - n;
  Vec p = Vec::set1(5.5171594e-2f);
  p = fma(p, r, Vec::set1(0.24261111f));
  p = fma(p, r, Vec::set1(0.69326103f));
  p = fma(p, r, Vec::set1(0.99992806f));
  return scale_by_power_of_two(p, n);
}

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
