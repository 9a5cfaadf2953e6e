// The activations of nightingale/ops/activation.h. A NaN stays one.

// erf, to 8e-8 of itself: x and an odd polynomial below 1, above it 1 less an
// exponential of one. Both fitted for the least largest error.
METAL_FUNC float error_function(float x) {
  float a = abs(x), u = x * x;
  if (!(a > 1.0f)) {
    float p = 7.853858e-05f;
    p = fma(p, u, -0.00080101925f);
    p = fma(p, u, 0.0051883277f);
    p = fma(p, u, -0.026853811f);
    p = fma(p, u, 0.112835854f);
    p = fma(p, u, -0.37612626f);
    p = fma(p, u, 0.12837917f);
    return fma(p, x, x);
  }
  a = min(a, 3.95f); // beyond it is 1
  float q = 2.168685e-05f;
  q = fma(q, a, -0.0004413364f);
  q = fma(q, a, 0.004204562f);
  q = fma(q, a, -0.025208257f);
  q = fma(q, a, 0.10841858f);
  q = fma(q, a, 0.6332199f);
  q = fma(q, a, 1.1295785f);
  q = fma(q, a, -0.00018804033f);
  float y = 1.0f - precise::exp(-q);
  return x < 0.0f ? -y : y;
}

// exp(x) - 1 for x up to 0: by its series where that loses nothing.
METAL_FUNC float exp_less_one(float x) {
  if (!(x > -0.5f)) return precise::exp(x) - 1.0f;
  float p = 1.0f;
  for (int i = 9; i > 1; --i) p = fma(p, x / float(i), 1.0f);
  return p * x;
}

METAL_FUNC float silu(float x) { return x / (1.0f + precise::exp(-x)); }

METAL_FUNC float gelu(float x) {
  return 0.5f * x * (1.0f + error_function(0.70710678f * x));
}

// The same for results of 16 bits, to 3e-6 of itself and 2e-8 of x: the normal
// distribution below 0 as a power of two. Fitted like error_function.
METAL_FUNC float coarse_gelu(float x) {
  float a = min(abs(x), 5.5f); // beyond it is 0 or x
  float p = -3.425284e-05f;
  p = fma(p, a, 0.000772003f);
  p = fma(p, a, -0.0080556301f);
  p = fma(p, a, 0.053300064f);
  p = fma(p, a, 0.45892605f);
  p = fma(p, a, 1.1511248f);
  p = fma(p, a, 1.0000026f);
  float below = fast::exp2(-p);
  return x * (x < 0.0f ? below : 1.0f - below);
}

// (1 + tanh(z)) / 2 is the sigmoid of 2 z.
METAL_FUNC float gelu_tanh(float x) {
  float z = x * fma(0.0713548163f, x * x, 1.59576912f);
  return x / (1.0f + precise::exp(-z));
}

// tanh(log(1 + e)) is e (e + 2) / (e (e + 2) + 2), where e is exp(x).
METAL_FUNC float mish(float x) {
  if (x > 20.0f) return x;
  float e = precise::exp(x), n = e * (e + 2.0f);
  return x * (n / (n + 2.0f));
}

METAL_FUNC float elu(float x) { return x > 0.0f ? x : exp_less_one(x); }

METAL_FUNC float leaky_relu(float x, float slope) {
  return x > 0.0f ? x : slope * x;
}

// By the number of the activation.
template <int ACTIVATION> METAL_FUNC float activated(float x) {
  switch (ACTIVATION) {
    case 1: return silu(x);
    case 2: return gelu(x);
    case 3: return mish(x);
    case 4: return elu(x);
    case 5: return leaky_relu(x, 0.01f);
    case 6: return x < 0.0f ? 0.0f : x;
    case 7: return gelu_tanh(x);
    case 8: return coarse_gelu(x);
    default: return x;
  }
}
