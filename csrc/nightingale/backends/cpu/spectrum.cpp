#include "nightingale/ops/spectrum.h"

#include <algorithm>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/ops/stft_basis.h"

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

// The hops [begin, begin + count) of one batch row: hop h takes part in the
// frames [h - first, h - first + 4).
void overlap_add(
    const float* x,
    int frames,
    bool first,
    bool last,
    int hops,
    int begin,
    int count,
    float* y) {
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

mx::array istft(const mx::array& x, bool first, bool last, mx::Stream s) {
  int batch = x.shape(0), frames = x.shape(1);
  int hops = std::max(0, frames + first + last - kStftOverlap + 1);
  return make_op(
      "Istft",
      {{batch, hops * kStftHop}},
      {as_float(x, s)},
      [=](const Arrays& in, Arrays& out) {
        for_frames(batch, hops, [&](int b, int begin, int count) {
          overlap_add(
              in[0].data<float>() + int64_t(b) * frames * kSpectrum,
              frames,
              first,
              last,
              hops,
              begin,
              count,
              out[0].data<float>() + (int64_t(b) * hops + begin) * kStftHop);
        });
      },
      s);
}

} // namespace nightingale::cpu
