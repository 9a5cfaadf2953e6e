#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/backends/stft_basis.h"

namespace nightingale::cpu {

namespace {

using ops::kStftBins;
using ops::kStftHop;
using ops::kStftOverlap;
using ops::kStftSize;

constexpr int kSpectrum = 2 * kStftBins; // floats of a frame
constexpr int kFramesPerTile = 256;

// [16, kAnalysisStride], zeros behind each row.
const float* padded_analysis_basis() {
  static const auto padded = [] {
    std::array<float, kStftSize * kAnalysisStride> rows{};
    auto basis = ops::analysis_basis();
    for (int n = 0; n < kStftSize; ++n) {
      std::copy_n(&basis[n * kSpectrum], kSpectrum, &rows[n * kAnalysisStride]);
    }
    return rows;
  }();
  return padded.data();
}

const float* kept_synthesis_basis() {
  static const auto basis = ops::synthesis_basis();
  return basis.data();
}

// Calls body(b, begin, count) for runs of `count` frames or hops of every batch
// row.
template <typename F>
void for_frames(int batch, int frames, F body) {
  int tiles = ceil_div(frames, kFramesPerTile);
  parallel_for(batch * tiles, [&](int tile) {
    int begin = tile % tiles * kFramesPerTile;
    body(tile / tiles, begin, std::min(kFramesPerTile, frames - begin));
  });
}

struct WindowedFrames;

// The hops [begin, begin + count) of one batch row of `frames`: hop h is
// covered by the frames [h - first, h - first + 4).
void overlap_add(
    const float* x,
    int frames,
    ops::SignalEnds ends,
    int begin,
    int count,
    float* y) {
  auto [first, last] = ends;
  int hops = frames + first + last - kStftOverlap + 1;
  constexpr int most = kFramesPerTile + kStftOverlap - 1;
  float* samples = scratch<WindowedFrames>(most * kStftSize);
  int from = begin - first, to = from + count + kStftOverlap - 1;
  int from_present = std::max(0, from), to_present = std::min(frames, to);
  std::fill_n(samples, (from_present - from) * kStftSize, 0.0f);
  simd().signal.synthesise(
      x + int64_t(from_present) * kSpectrum,
      to_present - from_present,
      kept_synthesis_basis(),
      samples + (from_present - from) * kStftSize);
  std::fill_n(
      samples + (to_present - from) * kStftSize,
      (to - to_present) * kStftSize,
      0.0f);
  static const auto whole = ops::inverse_envelope(false, false);
  for (int i = 0; i < count; ++i) {
    bool at_first = first && begin + i == 0;
    bool at_last = last && begin + i == hops - 1;
    auto gains =
        at_first || at_last ? ops::inverse_envelope(at_first, at_last) : whole;
    const float* frame = samples + i * kStftSize;
    for (int n = 0; n < kStftHop; ++n) {
      float sum = 0.0f;
      for (int block = 0; block < kStftOverlap; ++block) {
        sum += frame
            [(kStftOverlap - 1 - block) * kStftSize + block * kStftHop + n];
      }
      y[i * kStftHop + n] = sum * gains[n];
    }
  }
}

struct Complex {
  double re, im;
};

Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// exp(-2 pi i k / size) for every k.
std::vector<Complex> roots_of_unity(int size) {
  std::vector<Complex> roots(size);
  for (int k = 0; k < size; ++k) {
    double angle = -2 * std::numbers::pi * k / size;
    roots[k] = {std::cos(angle), std::sin(angle)};
  }
  return roots;
}

// As many 4s as possible, then the prime factors.
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

// The transform of real frames of one size, computed as a complex transform of
// half the size: even samples are real parts, odd ones imaginary parts.
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
  // Stockham's transform, which leaves the bins in order. Returns which of the
  // two buffers holds them.
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

mx::array stft(const mx::array& x, mx::Stream s) {
  int batch = x.shape(0), samples = x.shape(1);
  int frames = ops::stft_frames(samples);
  return make_op(
      "Stft",
      {{batch, frames, kSpectrum}},
      {as_float(x, s)},
      [=](const Arrays& in, Arrays& out) {
        for_frames(batch, frames, [&](int b, int begin, int count) {
          simd().signal.analyse(
              in[0].data<float>() + int64_t(b) * samples + begin * kStftHop,
              count,
              padded_analysis_basis(),
              out[0].data<float>() + (int64_t(b) * frames + begin) * kSpectrum);
        });
      },
      s);
}

mx::array polar_spectrum(const mx::array& x, mx::Stream s) {
  return make_op(
      "PolarSpectrum",
      {x.shape()},
      {as_float(x, s)},
      [](const Arrays& in, Arrays& out) {
        for_frames(1, row_count(in[0]), [&](int, int begin, int count) {
          int64_t at = int64_t(begin) * kSpectrum;
          simd().signal.polar(
              in[0].data<float>() + at, count, out[0].data<float>() + at);
        });
      },
      s);
}

mx::array istft(const mx::array& x, ops::SignalEnds ends, mx::Stream s) {
  int batch = x.shape(0), frames = x.shape(1);
  int hops = std::max(0, frames + ends.first + ends.last - kStftOverlap + 1);
  return make_op(
      "Istft",
      {{batch, hops * kStftHop}},
      {as_float(x, s)},
      [=](const Arrays& in, Arrays& out) {
        for_frames(batch, hops, [&](int b, int begin, int count) {
          overlap_add(
              in[0].data<float>() + int64_t(b) * frames * kSpectrum,
              frames,
              ends,
              begin,
              count,
              out[0].data<float>() + (int64_t(b) * hops + begin) * kStftHop);
        });
      },
      s);
}

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
