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

void lstm_cell(
    const float* gates,
    int64_t stride,
    int64_t count,
    float* cell,
    float* hidden) {
  auto next_cell = [](Vec i, Vec f, Vec g, Vec c) {
    return fma(sigmoid_vec(f), c, sigmoid_vec(i) * tanh_vec(g));
  };
  map(count, cell, next_cell, gates, gates + stride, gates + 2 * stride, cell);
  auto output = [](Vec o, Vec c) { return sigmoid_vec(o) * tanh_vec(c); };
  map(count, hidden, output, gates + 3 * stride, cell);
}

constexpr ActivationLoops activation_loops() {
  return {
      activate<silu_vec>,
      activate<gelu_vec>,
      activate<mish_vec>,
      activate<elu_vec>,
      activate<above_zero>,
      activate<gelu_tanh_vec>,
      leaky_relu,
      snake,
      lstm_cell};
}
