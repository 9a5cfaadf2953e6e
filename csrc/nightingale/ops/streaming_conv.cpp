#include "nightingale/ops/streaming_conv.h"

#include <algorithm>

#include "mlx/ops.h"
#include "nightingale/backends/gpu/convolution.h"
#include "nightingale/backends/gpu/row_parts.h"
#include "nightingale/backends/gpu/spectrum.h"
#include "nightingale/backends/gpu/streaming_conv.h"
#include "nightingale/ops/activation.h"
#include "nightingale/ops/spectrum.h"

namespace nightingale::ops {

namespace {

constexpr int kHalfFrame = kStftSize / 2;

// Whether kernels run that read rows in two parts.
bool in_parts(const mx::Stream& s) {
  return !on_cpu(s) && gpu::has_kernels(s);
}

// Whether they take these rows.
bool by_kernel(const FrameSpan& rows, const mx::Stream& s) {
  return in_parts(s) && gpu::is_device_array(rows.x);
}

bool by_kernel(const std::vector<FrameSpan>& parts, const mx::Stream& s) {
  return std::all_of(parts.begin(), parts.end(), [&](const FrameSpan& part) {
    return by_kernel(part, s);
  });
}

mx::array slice_rows(const mx::array& rows, int begin, int end, mx::Stream s) {
  mx::Shape start(rows.ndim(), 0), stop = rows.shape();
  start[1] = begin;
  stop[1] = end;
  return mx::slice(rows, start, stop, s);
}

// Rows [begin, end) of x, last first.
mx::array reversed(const mx::array& x, int begin, int end, mx::Stream s) {
  std::vector<int> order;
  for (int row = end - 1; row >= begin; --row) {
    order.push_back(row);
  }
  int count = order.size();
  return mx::take(x, mx::array(order.begin(), {count}), 1, s);
}

// The first `count` rows of all added up.
Merged sum_rows(const std::vector<FrameSpan>& parts, int count, mx::Stream s) {
  std::optional<mx::array> sum;
  std::vector<std::optional<mx::array>> kept;
  for (const auto& part : parts) {
    auto rows = whole(part, s);
    auto fresh = *cut(rows, 0, count, s);
    sum = sum ? mx::add(*sum, fresh, s) : fresh;
    kept.push_back(cut(rows, count, part.count(), s));
  }
  return {*sum, std::move(kept)};
}

} // namespace

FrameSpan joined(
    const std::optional<mx::array>& first,
    const std::optional<mx::array>& second,
    mx::Stream s) {
  if (!first || !second) {
    return {std::nullopt, first ? *first : *second};
  }
  FrameSpan rows{first, *second};
  return in_parts(s) ? rows : FrameSpan{std::nullopt, whole(rows, s)};
}

mx::array whole(const FrameSpan& rows, mx::Stream s) {
  return rows.before ? mx::concatenate({*rows.before, rows.x}, 1, s) : rows.x;
}

std::optional<mx::array>
cut(const mx::array& rows, int begin, int end, mx::Stream s) {
  if (begin >= end) {
    return std::nullopt;
  }
  if (begin == 0 && end == rows.shape(1)) {
    return rows;
  }
  return mx::contiguous(slice_rows(rows, begin, end, s), false, s);
}

Filters Filters::of(const Kernel& w, mx::Stream s, bool halves) {
  if (w.is_quantized()) {
    return {w, std::nullopt};
  }
  auto rows = mx::reshape(w.matrix.w, {w.filters(), w.taps * w.channels()}, s);
  Filters filters{w, mx::transpose(rows, s)};
  if (halves && gpu::has_tiles(s)) {
    filters.halves = computed(mx::astype(rows, mx::float16, s));
  }
  return filters;
}

StreamOutput conv1d(
    const FrameSpan& x,
    const Filters& filters,
    const StreamingConv& conv,
    mx::Stream s) {
  if (by_kernel(x, s)) {
    return gpu::conv1d(x, filters, conv, s);
  }
  const auto& w = filters.w;
  auto rows = whole(x, s);
  int count = x.count();
  int results = conv.shape.output_rows(count, w.taps);
  Epilogue epilogue = conv.epilogue;
  if (conv.residual) {
    int begin = conv.residual_begin;
    auto residual = whole(*conv.residual, s);
    epilogue.residual = slice_rows(residual, begin, begin + results, s);
  }
  auto read = conv.snake ? snake(rows, *conv.snake, s) : rows;
  auto y = conv1d(read, w, conv.shape, epilogue, s);
  int first = conv.keep ? conv.first_kept(results) : count;
  return {y, cut(rows, first, count, s)};
}

StreamOutput conv_transpose1d(
    const FrameSpan& x,
    const mx::array& w,
    const mx::array& bias,
    const ConvTranspose1d& shape,
    int keep,
    mx::Stream s) {
  if (by_kernel(x, s)) {
    return gpu::conv_transpose1d(x, w, bias, shape, keep, s);
  }
  auto rows = whole(x, s);
  int count = x.count();
  return {
      conv_transpose1d(rows, w, bias, shape, s),
      cut(rows, count - keep, count, s)};
}

Merged add_rows(const std::vector<FrameSpan>& parts, int count, mx::Stream s) {
  return by_kernel(parts, s) ? gpu::add_rows(parts, count, s)
                             : sum_rows(parts, count, s);
}

Merged mean_rows(
    const std::vector<FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  if (by_kernel(parts, s)) {
    return gpu::mean_rows(parts, count, slope, s);
  }
  auto merged = sum_rows(parts, count, s);
  mx::array number(static_cast<float>(parts.size()));
  merged.y = leaky_relu(mx::divide(merged.y, number, s), slope, s);
  return merged;
}

StreamOutput
centred_stft(const FrameSpan& x, bool first, bool last, mx::Stream s) {
  if (by_kernel(x, s)) {
    return gpu::centred_stft(x, first, last, s);
  }
  auto samples = whole(x, s);
  int count = samples.shape(1);
  std::vector<mx::array> parts{samples};
  if (first) {
    parts.insert(parts.begin(), reversed(samples, 1, kHalfFrame + 1, s));
  }
  if (last) {
    parts.push_back(reversed(samples, count - 1 - kHalfFrame, count - 1, s));
  }
  if (parts.size() > 1) {
    samples = mx::concatenate(parts, 1, s);
    count = samples.shape(1);
  }
  int first_kept = last ? count : stft_frames(count) * kStftHop;
  return {
      stft(mx::reshape(samples, {1, count}, s), s),
      cut(samples, first_kept, count, s)};
}

StreamOutput
waveform(const FrameSpan& x, bool first, bool last, float limit, mx::Stream s) {
  if (by_kernel(x, s)) {
    return gpu::waveform(x, first, last, limit, s);
  }
  constexpr int reach = kStftSize / kStftHop - 1;
  auto rows = whole(x, s);
  auto samples = istft(polar_spectrum(rows, s), first, last, s);
  samples = mx::clip(samples, mx::array(-limit), mx::array(limit), s);
  int count = x.count(), first_kept = last ? count : count - reach;
  return {samples, cut(rows, std::max(0, first_kept), count, s)};
}

} // namespace nightingale::ops
