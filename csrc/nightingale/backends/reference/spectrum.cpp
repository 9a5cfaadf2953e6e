#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/backends/stft_basis.h"

namespace nightingale::reference {

using ops::kStftBins;
using ops::kStftHop;
using ops::kStftOverlap;
using ops::kStftSize;

namespace {

mx::array inverse_envelope(bool first_missing, bool last_missing) {
  auto gains = ops::inverse_envelope(first_missing, last_missing);
  return mx::array(gains.data(), {1, 1, kStftHop});
}

// [1, hops, 4]
mx::array inverse_envelopes(int hops, bool first, bool last, mx::Stream s) {
  if (hops == 1) {
    return inverse_envelope(first, last);
  }
  auto whole = mx::broadcast_to(
      inverse_envelope(false, false), {1, hops - 2, kStftHop}, s);
  return mx::concatenate(
      {inverse_envelope(first, false), whole, inverse_envelope(false, last)},
      1,
      s);
}

} // namespace

mx::array stft(const mx::array& x, mx::Stream s) {
  int frames = ops::stft_frames(x.shape(1));
  auto rows = mx::contiguous(x, false, s);
  auto windows = mx::as_strided(
      rows,
      {x.shape(0), frames, kStftSize},
      {static_cast<int64_t>(x.shape(1)), kStftHop, 1},
      0,
      s);
  auto basis = ops::analysis_basis();
  return mx::matmul(
      windows, mx::array(basis.data(), {kStftSize, 2 * kStftBins}), s);
}

mx::array polar_spectrum(const mx::array& x, mx::Stream s) {
  auto halves = mx::split(x, 2, -1, s);
  auto magnitude = mx::minimum(mx::exp(halves[0], s), mx::array(100.0f), s);
  auto phase = mx::sin(halves[1], s);
  return mx::concatenate(
      {mx::multiply(magnitude, mx::cos(phase, s), s),
       mx::multiply(magnitude, mx::sin(phase, s), s)},
      -1,
      s);
}

mx::array istft(const mx::array& x, ops::SignalEnds ends, mx::Stream s) {
  auto [first, last] = ends;
  auto basis = ops::synthesis_basis();
  auto samples =
      mx::matmul(x, mx::array(basis.data(), {2 * kStftBins, kStftSize}), s);
  samples = mx::pad(
      samples, {{0, 0}, {first, last}, {0, 0}}, mx::array(0.0f), "constant", s);
  int batch = x.shape(0), hops = samples.shape(1) - kStftOverlap + 1;
  if (hops <= 0) {
    return mx::zeros({batch, 0}, mx::float32, s);
  }
  auto sum = mx::zeros({batch, hops, kStftHop}, mx::float32, s);
  for (int block = 0; block < kStftOverlap; ++block) {
    int frame = kStftOverlap - 1 - block;
    sum = mx::add(
        sum,
        mx::slice(
            samples,
            {0, frame, block * kStftHop},
            {batch, frame + hops, (block + 1) * kStftHop},
            s),
        s);
  }
  auto y = mx::multiply(sum, inverse_envelopes(hops, first, last, s), s);
  return mx::reshape(y, {batch, hops * kStftHop}, s);
}

} // namespace nightingale::reference
