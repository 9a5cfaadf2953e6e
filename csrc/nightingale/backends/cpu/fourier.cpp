#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct Complex {
  double re, im;
};

Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// exp(-2 pi i k / size) of every k.
std::vector<Complex> roots_of_unity(int size) {
  std::vector<Complex> roots(size);
  for (int k = 0; k < size; ++k) {
    double angle = -2 * std::numbers::pi * k / size;
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

// 4 as often as it goes, then the prime factors.
std::vector<int> radices_of(int size) {
  std::vector<int> radices;
  auto take_out = [&](int radix) {
    for (; size % radix == 0; size /= radix) {
      radices.push_back(radix);
    }
  };
  take_out(4);
  for (int radix = 2; size > 1; ++radix) {
    take_out(radix);
  }
  return radices;
}

// The transform of real frames of one size. The even samples of a frame are the
// real and the odd ones the imaginary parts of a sequence half as long.
class RealFourier {
 public:
  explicit RealFourier(int size)
      : half_(size / 2),
        radices_(radices_of(half_)),
        roots_(roots_of_unity(half_)),
        frame_roots_(roots_of_unity(size)) {}

  // The squared magnitudes of bins 0 to size / 2. frame: [size]
  void power(const float* frame, float* y) const {
    struct Sequences;
    Complex* z = scratch<Sequences, Complex>(2 * half_);
    for (int i = 0; i < half_; ++i) {
      z[i] = {frame[2 * i], frame[2 * i + 1]};
    }
    z = transform(z, z + half_);
    for (int k = 0; k <= half_; ++k) {
      Complex a = z[k % half_], b = z[(half_ - k) % half_];
      Complex even{(a.re + b.re) / 2, (a.im - b.im) / 2};
      Complex odd{(a.im + b.im) / 2, (b.re - a.re) / 2};
      Complex turned = odd * frame_roots_[k];
      double re = even.re + turned.re, im = even.im + turned.im;
      y[k] = static_cast<float>(re * re + im * im);
    }
  }

 private:
  // Stockham's transform: each radix interleaves what it makes, so that the
  // last one leaves the bins in order. Returns which of the two holds them.
  Complex* transform(Complex* from, Complex* to) const {
    int stride = 1;
    for (int radix : radices_) {
      int length = half_ / stride / radix;
      for (int i = 0; i < length; ++i) {
        for (int r = 0; r < radix; ++r) {
          Complex* y = to + stride * (radix * i + r);
          std::fill_n(y, stride, Complex{0, 0});
          for (int j = 0; j < radix; ++j) {
            int at = i + length * j;
            const Complex* x = from + stride * at;
            Complex root = roots_[int64_t(stride) * r * at % half_];
            for (int q = 0; q < stride; ++q) {
              Complex term = x[q] * root;
              y[q].re += term.re;
              y[q].im += term.im;
            }
          }
        }
      }
      stride *= radix;
      std::swap(from, to);
    }
    return from;
  }

  int half_;
  std::vector<int> radices_;
  std::vector<Complex> roots_, frame_roots_;
};

} // namespace

mx::array power_spectrum(const mx::array& frames, mx::Stream s) {
  mx::Shape shape = frames.shape();
  int size = shape.back(), bins = size / 2 + 1;
  shape.back() = bins;
  return make_op(
      "PowerSpectrum",
      {shape},
      {as_float(frames, s)},
      [=](const Arrays& in, Arrays& out) {
        RealFourier fourier(size);
        for_rows(row_count(in[0]), [&](int row) {
          fourier.power(
              in[0].data<float>() + int64_t(row) * size,
              out[0].data<float>() + int64_t(row) * bins);
        });
      },
      s);
}

} // namespace nightingale::cpu
