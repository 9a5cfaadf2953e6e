#include "nightingale/ops/streaming_conv.h"

#include <doctest/doctest.h>

#include "arrays.h"
#include "frame_spans.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// conv1d of x in chunks of `size` frames, each with what the last one kept.
std::vector<float> convolve_chunks(
    const mx::array& x,
    const ops::Kernel& w,
    ops::StreamingConv conv,
    int size) {
  auto s = cpu_stream();
  auto filters = ops::make_filters(w, false, s);
  std::vector<float> all;
  std::optional<mx::array> kept;
  for (int begin = 0, end = 0; begin < x.shape(1); begin = end) {
    end = std::min(begin + size, x.shape(1));
    auto chunk = ops::join_frames(kept, rows_of(x, begin, end), s);
    int results = conv.shape.output_rows(chunk.count(), w.taps);
    if (results == 0) {
      kept = ops::to_array(chunk, s);
      continue;
    }
    auto output = ops::streaming_conv1d(chunk, filters, conv, s);
    auto y = floats(output.y);
    all.insert(all.end(), y.begin(), y.end());
    kept = output.kept;
    conv.shape.pad_left = std::max(0, conv.shape.pad_left - results);
  }
  return all;
}

} // namespace

TEST_CASE("streaming_conv1d in chunks has the bits of the whole signal") {
  auto s = cpu_stream();
  auto x = noise_array({1, 60, 12}, 1), alpha = alpha_of(12);
  for (auto [taps, dilation, pad] :
       {std::tuple{1, 1, 0}, {3, 1, 2}, {3, 5, 3}, {7, 2, 20}}) {
    ops::Kernel w = noise_array({5, taps, 12}, 2);
    ops::StreamingConv conv{
        .shape = {.dilation = dilation, .pad_left = pad}, .snake = alpha};
    auto whole = convolve_chunks(x, w, conv, 60);
    CHECK(whole.size() == size_t(5 * conv.shape.output_rows(60, taps)));
    for (int size : {1, 7, 31}) {
      CAPTURE(taps);
      CAPTURE(size);
      CHECK(same_bits(convolve_chunks(x, w, conv, size), whole));
    }
  }
}

TEST_CASE("streaming_conv1d adds the residual from its first frame on") {
  auto s = cpu_stream();
  auto x = noise_array({1, 30, 8}, 1), residual = noise_array({1, 50, 4}, 3);
  ops::Kernel w = noise_array({4, 3, 8}, 2);
  ops::StreamingConv conv{
      .residual = split_at(residual, 9), .residual_begin = 11, .keep = false};
  auto output = ops::streaming_conv1d(
      split_at(x, 0), ops::make_filters(w, false, s), conv, s);
  ops::Epilogue epilogue{.residual = rows_of(residual, 11, 39)};
  CHECK(same_bits(output.y, ops::conv1d(x, w, {{}, epilogue}, s)));
  CHECK_FALSE(output.kept);
}

TEST_CASE("streaming_conv_transpose1d returns the last frames it was given") {
  auto s = cpu_stream();
  auto x = noise_array({1, 20, 8}, 1);
  ops::TransposedFilters filters{
      noise_array({6, 7, 8}, 2), noise_array({6}, 3)};
  ops::ConvTranspose1d shape{3, 2, 5};
  auto expected = ops::conv_transpose1d(x, filters, shape, s);
  for (int keep : {0, 2, 20}) {
    CAPTURE(keep);
    auto output = ops::streaming_conv_transpose1d(
        split_at(x, 5), filters, {shape, keep}, s);
    CHECK(same_bits(output.y, expected));
    check_kept(output.kept, x, 20 - keep);
  }
}

TEST_CASE("frames are added and averaged as far as all streams have them") {
  auto s = cpu_stream();
  auto a = noise_array({1, 30, 3}, 1), b = noise_array({1, 21, 3}, 2);
  for (int count : {1, 21}) {
    CAPTURE(count);
    auto sum = ops::add_frames({split_at(a, 9), split_at(b, 0)}, count, s);
    auto mean =
        ops::mean_frames({split_at(a, 9), split_at(b, 0)}, count, 0.1f, s);
    Values x = values(rows_of(a, 0, count)), y = values(rows_of(b, 0, count));
    Values sums, means;
    for (size_t i = 0; i < x.size(); ++i) {
      sums.push_back(x[i] + y[i]);
      means.push_back(sums[i] / 2 * (sums[i] < 0 ? 0.1 : 1.0));
    }
    CHECK(relative_error(sum.y, sums) < 1e-6);
    CHECK(relative_error(mean.y, means) < 1e-6);
    check_kept(sum.kept[0], a, count);
    check_kept(mean.kept[1], b, count);
  }
}
