// The loops behind `ActivationLoops`, part of simd_loops.inl.

using nightingale::cpu::ActivationLoops;

template <Vec (*f)(Vec)>
void activate(const float* x, int64_t count, float* y) {
  map(count, y, [](Vec a) { return f(a); }, x);
}

void leaky_relu(const float* x, int64_t count, float slope, float* y) {
  Vec below = Vec::set1(slope);
  map(count, y, [=](Vec a) { return leaky_vec(a, below); }, x);
}

void snake(
    const float* x,
    const float* alpha,
    const float* inverse_alpha,
    int64_t count,
    float* y) {
  auto one = [](Vec a, Vec b, Vec c) { return snake_vec(a, b, c); };
  map(count, y, one, x, alpha, inverse_alpha);
}

constexpr ActivationLoops activation_loops() {
  return {
      activate<silu_vec>,
      activate<gelu_vec>,
      activate<mish_vec>,
      activate<elu_vec>,
      leaky_relu,
      snake};
}
