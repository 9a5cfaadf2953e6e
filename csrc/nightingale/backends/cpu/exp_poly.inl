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
