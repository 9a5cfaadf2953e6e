#include <limits>
#include <vector>

#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/cache_groups.h"

namespace nightingale::reference {

namespace {

constexpr uint32_t kUpper = 0xffff0000;

// The bits of the bfloat16 next to x, away from 0.
mx::array outward(const mx::array& x, mx::Stream s) {
  auto next = mx::add(mx::view(x, mx::uint32, s), mx::array(0xffffu), s);
  return mx::bitwise_and(next, mx::array(kUpper), s);
}

mx::array columns(const mx::array& x, int begin, int end, mx::Stream s) {
  mx::Shape from(x.ndim(), 0), to = x.shape();
  from.back() = begin;
  to.back() = end;
  return mx::slice(x, from, to, s);
}

} // namespace

mx::array encode_heads(const mx::array& x, int bits, mx::Stream s) {
  mx::Shape grouped = x.shape();
  grouped.back() = x.shape(-1) / ops::kCacheGroup;
  mx::Shape affines = grouped;
  grouped.push_back(ops::kCacheGroup);
  auto floats = mx::contiguous(
      mx::reshape(mx::astype(x, mx::float32, s), grouped, s), false, s);
  auto zero = mx::array(0.0f), last = mx::array(float((1 << bits) - 1));
  auto least = mx::minimum(mx::min(floats, -1, true, s), zero, s);
  auto most = mx::maximum(mx::max(floats, -1, true, s), zero, s);
  auto offset_bits = outward(least, s);
  auto offset = mx::view(offset_bits, mx::float32, s);
  auto span =
      mx::subtract(mx::divide(most, last, s), mx::divide(offset, last, s), s);
  auto finite = mx::all(mx::isfinite(floats, s), -1, true, s);
  auto scale_bits = outward(span, s);
  auto scale = mx::view(scale_bits, mx::float32, s);
  auto divisor =
      mx::where(mx::greater(scale, zero, s), scale, mx::array(1.0f), s);
  auto quantized = mx::floor(
      mx::add(
          mx::divide(mx::subtract(floats, offset, s), divisor, s),
          mx::array(0.5f),
          s),
      s);
  quantized = mx::where(finite, mx::clip(quantized, zero, last, s), zero, s);

  mx::Shape split = x.shape();
  split.back() = x.shape(-1) * bits / 32;
  split.push_back(32 / bits);
  auto places = mx::multiply(
      mx::arange(0, 32 / bits, 1, mx::uint32, s),
      mx::array(static_cast<uint32_t>(bits)),
      s);
  auto words = mx::sum(
      mx::left_shift(
          mx::reshape(mx::astype(quantized, mx::uint32, s), split, s),
          places,
          s),
      -1,
      false,
      s);
  auto affine = mx::bitwise_or(
      offset_bits, mx::right_shift(scale_bits, mx::array(16u), s), s);
  affine = mx::where(finite, affine, mx::array(0x7fc0u), s); // a NaN scale
  return mx::concatenate(
      {mx::astype(words, mx::uint32, s), mx::reshape(affine, affines, s)},
      x.ndim() - 1,
      s);
}

mx::array
decode_heads(const mx::array& rows, int bits, mx::Dtype dtype, mx::Stream s) {
  // Every group has `bits` words of integers and one of scale and offset.
  int all = rows.shape(-1), words = all / (bits + 1) * bits;
  auto affine = mx::contiguous(columns(rows, words, all, s), false, s);
  auto floats = mx::dequantize(
      mx::contiguous(columns(rows, 0, words, s), false, s),
      mx::view(mx::left_shift(affine, mx::array(16u), s), mx::float32, s),
      mx::view(mx::bitwise_and(affine, mx::array(kUpper), s), mx::float32, s),
      ops::kCacheGroup,
      bits,
      "affine",
      std::nullopt,
      mx::float32,
      s);
  return mx::astype(floats, dtype, s);
}

} // namespace nightingale::reference
