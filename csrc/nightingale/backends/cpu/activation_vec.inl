// Activations over the vector type `Vec`, for loops of their own and for what a
// product goes through before it is stored. Bounds stand first in max and min:
// x86 returns the second where one is NaN, and a NaN must not be hidden.

inline Vec above_zero(Vec x) {
  return max(Vec::zero(), x);
}

inline Vec below_zero(Vec x) {
  return min(Vec::zero(), x);
}

inline Vec sigmoid_vec(Vec x) {
  x = max(Vec::set1(-88.0f), x); // below, exp(-x) has no float32, as in silu
  return reciprocal(Vec::set1(1.0f) + exp(Vec::zero() - x));
}

inline Vec silu_vec(Vec x) {
  x = max(Vec::set1(-88.0f), x); // below, exp(-x) has no float32 and silu is 0
  return x * reciprocal(Vec::set1(1.0f) + exp(Vec::zero() - x));
}

// max(x, 0) - |x| * Q(|x|), where the normal tail Q is 2 to the power of a
// polynomial: exact to 3e-7, and down to -5 to 3e-6 of itself.
inline Vec gelu_vec(Vec x) {
  Vec a = min(Vec::set1(13.2f), abs(x)); // Q is 0 beyond
  Vec p = Vec::set1(-1.83876985e-08f);
  p = fma(p, a, Vec::set1(5.78576646e-07f));
  p = fma(p, a, Vec::set1(-7.81266681e-06f));
  p = fma(p, a, Vec::set1(5.70872435e-05f));
  p = fma(p, a, Vec::set1(-0.00020900619f));
  p = fma(p, a, Vec::set1(-0.000156487673f));
  p = fma(p, a, Vec::set1(0.00715361536f));
  p = fma(p, a, Vec::set1(-0.0525952093f));
  p = fma(p, a, Vec::set1(-0.459163278f));
  p = fma(p, a, Vec::set1(-1.15111256f));
  p = fma(p, a, Vec::set1(-0.999999762f));
  return above_zero(x) - a * exp2_vec(p);
}

// The same for results that are rounded to bfloat16: to 2e-4 of itself down to
// -6, and -6e-9 below.
inline Vec gelu_bf16_vec(Vec x) {
  Vec a = min(Vec::set1(6.0f), abs(x));
  Vec p = Vec::set1(2.48399865e-05f);
  p = fma(p, a, Vec::set1(-0.000641553023f));
  p = fma(p, a, Vec::set1(0.00738120731f));
  p = fma(p, a, Vec::set1(-0.0516998731f));
  p = fma(p, a, Vec::set1(-0.460636497f));
  p = fma(p, a, Vec::set1(-1.15045726f));
  p = fma(p, a, Vec::set1(-1.00004447f));
  return above_zero(x) - a * coarse_exp2_vec(p);
}

// (1 + tanh(z)) / 2 is the sigmoid of 2 z.
inline Vec gelu_tanh_vec(Vec x) {
  Vec inner = fma(Vec::set1(0.0713548163f), x * x, Vec::set1(1.59576912f));
  return x * sigmoid_vec(inner * x);
}

// tanh(log(1 + e)) is e (e + 2) / (e (e + 2) + 2), where e is exp(x).
inline Vec mish_vec(Vec x) {
  x = max(Vec::set1(-88.0f), x); // below, mish is 0
  Vec e = exp(min(Vec::set1(20.0f), x)); // above, the quotient is 1
  Vec two = Vec::set1(2.0f), n = e * (e + two);
  return x * (n * reciprocal(n + two));
}

inline Vec elu_vec(Vec x) {
  return above_zero(x) + expm1(below_zero(x));
}

inline Vec leaky_vec(Vec x, Vec slope) {
  return fma(slope, below_zero(x), above_zero(x));
}

inline Vec tanh_vec(Vec x) {
  x = min(Vec::set1(10.0f), max(Vec::set1(-10.0f), x)); // beyond, 1 and -1
  Vec m = expm1(x + x);
  return m / (m + Vec::set1(2.0f));
}

inline Vec snake_vec(Vec x, Vec alpha, Vec inverse_alpha) {
  return fma(inverse_alpha, sin_squared_vec(alpha * x), x);
}
