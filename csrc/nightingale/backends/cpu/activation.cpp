#include <algorithm>

#include "nightingale/backends/cpu/epilogue.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

// Elements: converted ones then stay in the first level of the cache.
constexpr int kTile = 1 << 12;

using Loop = void (*)(const float* x, int64_t count, float* y);

Loop loop_of(ops::Activation activation) {
  const ActivationLoops& loops = simd().activation;
  switch (activation) {
    case ops::Activation::silu:
      return loops.silu;
    case ops::Activation::gelu:
      return loops.gelu;
    case ops::Activation::mish:
      return loops.mish;
    case ops::Activation::elu:
      return loops.elu;
    case ops::Activation::relu:
      return loops.relu;
    case ops::Activation::gelu_tanh:
      return loops.gelu_tanh;
    default:
      return nullptr;
  }
}

// y = loop(x) for each element. loop(x, count, y)
template <typename F>
void for_elements(const mx::array& x, mx::array& y, F loop) {
  for_parts(x.size(), kTile, [&](int64_t begin, int count) {
    const float* from = read_floats(x, begin, count);
    write_floats(y, begin, count, [&](float* to) { loop(from, count, to); });
  });
}

// Calls body(row) for every row of `channels` elements, about a tile at a time.
template <typename F>
void for_wide_rows(int rows, int channels, F body) {
  for_rows(rows, body, std::max(1, kTile / std::max(1, channels)));
}

} // namespace

mx::array
activate(const mx::array& x, ops::Activation activation, mx::Stream s) {
  if (activation == ops::Activation::none) {
    return x;
  }
  if (activation == ops::Activation::leaky_relu) {
    return leaky_relu(x, 0.01f, s);
  }
  return make_op(
      "Activate",
      {x.shape(), x.dtype()},
      {dense(x, s)},
      [activation](const Arrays& in, Arrays& out) {
        for_elements(in[0], out[0], loop_of(activation));
      },
      s);
}

mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s) {
  return make_op(
      "LeakyRelu",
      {x.shape(), x.dtype()},
      {dense(x, s)},
      [slope](const Arrays& in, Arrays& out) {
        auto loop = simd().activation.leaky_relu;
        for_elements(in[0], out[0], [=](const float* x, int count, float* y) {
          loop(x, count, slope, y);
        });
      },
      s);
}

mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s) {
  return make_op(
      "Snake",
      {x.shape(), x.dtype()},
      {dense(x, s), as_float(alpha, s)},
      [](const Arrays& in, Arrays& out) {
        int channels = in[1].size();
        const float* alpha = in[1].data<float>();
        const float* inverse = inverse_alpha(alpha, channels);
        for_wide_rows(row_count(in[0]), channels, [&](int row) {
          int64_t begin = int64_t(row) * channels;
          const float* from = read_floats(in[0], begin, channels);
          write_floats(out[0], begin, channels, [&](float* to) {
            simd().activation.snake(from, alpha, inverse, channels, to);
          });
        });
      },
      s);
}

mx::array cast(const mx::array& x, mx::Dtype dtype, mx::Stream s) {
  if (x.dtype() == dtype) {
    return x;
  }
  storage_of(x);
  storage_of(dtype);
  return make_op(
      "Cast",
      {x.shape(), dtype},
      {dense(x, s)},
      [](const Arrays& in, Arrays& out) {
        Storage from = storage_of(in[0]);
        Storage to = storage_of(out[0]);
        for_parts(in[0].size(), kTile, [&](int64_t begin, int count) {
          if (to == Storage::f32) {
            simd().unpack[static_cast<int>(from)](
                in[0].data<char>() + begin * storage_bytes(from),
                count,
                out[0].data<float>() + begin);
          } else {
            simd().pack[static_cast<int>(to)](
                read_floats(in[0], begin, count),
                count,
                out[0].data<char>() + begin * storage_bytes(to));
          }
        });
      },
      s);
}

mx::array swiglu(const mx::array& gate_up, mx::Stream s) {
  mx::Shape shape = gate_up.shape();
  shape.back() /= 2;
  return make_op(
      "Swiglu",
      {shape},
      {as_float(gate_up, s)},
      [](const Arrays& in, Arrays& out) {
        int channels = out[0].shape(-1);
        for_wide_rows(row_count(out[0]), channels, [&](int row) {
          int64_t begin = int64_t(row) * channels;
          const float* gate = in[0].data<float>() + 2 * begin;
          float* y = out[0].data<float>() + begin;
          simd().silu_mul(gate, gate + channels, channels, y);
        });
      },
      s);
}

} // namespace nightingale::cpu
