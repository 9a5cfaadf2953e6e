// exp for a vector type that has round() and scale_by_power_of_two(): range
// reduction by ln 2 in two parts and a polynomial, within 2 ulp of exact over
// the float32 range. Included by the vector headers, inside their namespace.

inline Vec exp(Vec x) {
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
  p = fma(p, r * r, r + Vec::set1(1.0f));
  return scale_by_power_of_two(p, n);
}
