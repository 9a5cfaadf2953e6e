#include <algorithm>
#include <bit>

#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/stft_basis.h"

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

// The bits of `ends` as the kernels read them.
int flags_of(ops::SignalEnds ends) {
  return ends.first | ends.last << 1;
}

} // namespace

ops::StreamOutput
centred_stft(const ops::FrameSpan& frames, ops::SignalEnds ends, mx::Stream s) {
  if (!reads_spans(frames, s)) {
    return backends::centred_stft(frames, ends, s);
  }
  auto x = readable(frames, s);
  int count = x.count(), split = split_of(x);
  int mirrored = kStftSize / 2 * (ends.first + ends.last);
  int results = ops::stft_frames(count + mirrored);
  int keep = ends.last ? 0 : count + mirrored - results * kStftHop;
  auto out = launch(
      {.kernel = "stft",
       .inputs =
           {x.x,
            x.before.value_or(x.x),
            analysis(),
            pair(split, count),
            pair(flags_of(ends), results)},
       .outputs =
           {{{1, results, kSpectrum}, mx::float32},
            {{1, std::max(1, keep), 1}, mx::float32}},
       .groups = {chunks_of(int64_t(results) * kSpectrum), 1, 1},
       .threads = kChunkThreads},
      s);
  return {out[0], keep > 0 ? std::optional(out[1]) : std::nullopt};
}

ops::StreamOutput waveform(
    const ops::FrameSpan& frames,
    ops::SignalEnds ends,
    float limit,
    mx::Stream s) {
  if (!reads_spans(frames, s)) {
    return backends::waveform(frames, ends, limit, s);
  }
  auto x = readable(frames, s);
  int count = x.count(), split = split_of(x);
  int hops = count + ends.first + ends.last - kStftOverlap + 1;
  int keep = ends.last ? 0 : std::min(count, kStftOverlap - 1);
  auto out = launch(
      {.kernel = "waveform",
       .inputs =
           {x.x,
            x.before.value_or(x.x),
            synthesis(),
            pair(split, count),
            pair(flags_of(ends), hops)},
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
