#include "nightingale/backends/gpu/spectrum.h"

#include <algorithm>
#include <bit>

#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/ops/spectrum.h"
#include "nightingale/ops/stft_basis.h"

namespace nightingale::gpu {

namespace {

using ops::kStftBins;
using ops::kStftHop;
using ops::kStftOverlap;
using ops::kStftSize;

constexpr int kSpectrum = 2 * kStftBins; // floats of a frame
constexpr int kHopsPerGroup = 64; // as in waveform.metal

// [16, 18]
const mx::array& analysis() {
  static const auto* basis = [] {
    auto values = ops::analysis_basis();
    return new mx::array(values.data(), {kStftSize, kSpectrum});
  }();
  return *basis;
}

// The synthesis basis, then the gains where no frame is missing, the first, the
// last, both.
const mx::array& synthesis() {
  static const auto* tables = [] {
    auto basis = ops::synthesis_basis();
    std::vector<float> values(basis.begin(), basis.end());
    for (int missing = 0; missing < 4; ++missing) {
      auto gains = ops::inverse_envelope(missing & 1, missing & 2);
      values.insert(values.end(), gains.begin(), gains.end());
    }
    int count = values.size();
    return new mx::array(values.begin(), {count});
  }();
  return *tables;
}

int ends_of(bool first, bool last) {
  return first | last << 1;
}

} // namespace

ops::StreamOutput
centred_stft(const ops::FrameSpan& rows, bool first, bool last, mx::Stream s) {
  auto x = readable(rows, s);
  int count = x.count(), split = x.before ? x.before->shape(1) : 0;
  int mirrored = kStftSize / 2 * (first + last);
  int frames = ops::stft_frames(count + mirrored);
  int keep = last ? 0 : count + mirrored - frames * kStftHop;
  auto out = launch(
      {.kernel = "stft",
       .inputs =
           {x.x,
            x.before.value_or(x.x),
            analysis(),
            pair(split, count),
            pair(ends_of(first, last), frames)},
       .outputs =
           {{{1, frames, kSpectrum}, mx::float32},
            {{1, std::max(1, keep), 1}, mx::float32}},
       .groups = {chunks_of(int64_t(frames) * kSpectrum), 1, 1},
       .threads = kChunkThreads},
      s);
  return {out[0], keep > 0 ? std::optional(out[1]) : std::nullopt};
}

ops::StreamOutput waveform(
    const ops::FrameSpan& rows,
    bool first,
    bool last,
    float limit,
    mx::Stream s) {
  auto x = readable(rows, s);
  int count = x.count(), split = x.before ? x.before->shape(1) : 0;
  int hops = count + first + last - kStftOverlap + 1;
  int keep = last ? 0 : std::min(count, kStftOverlap - 1);
  auto out = launch(
      {.kernel = "waveform",
       .inputs =
           {x.x,
            x.before.value_or(x.x),
            synthesis(),
            pair(split, count),
            pair(ends_of(first, last), hops)},
       .outputs =
           {{{1, hops * kStftHop}, mx::float32},
            {keep > 0 ? mx::Shape{1, keep, kSpectrum} : mx::Shape{1},
             mx::float32}},
       .constants = {{"LIMIT", std::bit_cast<int>(limit)}},
       .groups = {(hops + kHopsPerGroup - 1) / kHopsPerGroup, 1, 1},
       .threads = kChunkThreads},
      s);
  return {out[0], keep > 0 ? std::optional(out[1]) : std::nullopt};
}

} // namespace nightingale::gpu
