#include <limits>

#include "mlx/ops.h"
#include "mlx/random.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

namespace {

mx::array removed() {
  return mx::array(-std::numeric_limits<float>::infinity());
}

mx::array
penalised(const mx::array& x, const mx::array& seen, float by, mx::Stream s) {
  mx::array penalty(by);
  auto lower = mx::where(
      mx::less(x, mx::array(0.0f), s),
      mx::multiply(x, penalty, s),
      mx::divide(x, penalty, s),
      s);
  return mx::where(mx::astype(seen, mx::bool_, s), lower, x, s);
}

mx::array apply_top_k(const mx::array& x, int top_k, mx::Stream s) {
  int count = x.shape(0);
  if (top_k == 0 || top_k >= count) {
    return x;
  }
  int last = count - top_k;
  auto least = mx::slice(mx::sort(x, -1, s), {last}, {last + 1}, s);
  return mx::where(mx::less(x, least, s), removed(), x, s);
}

mx::array apply_min_p(const mx::array& x, float min_p, mx::Stream s) {
  auto p = mx::softmax(x, -1, true, s);
  auto least = mx::multiply(mx::max(p, s), mx::array(min_p), s);
  return mx::where(mx::less(p, least, s), removed(), x, s);
}

mx::array apply_top_p(const mx::array& x, float top_p, mx::Stream s) {
  auto p = mx::softmax(x, -1, true, s);
  auto kept = mx::where(mx::greater(p, mx::array(0.0f), s), x, removed(), s);
  if (top_p >= 1.0f) {
    return kept;
  }
  auto order = mx::argsort(x, -1, s);
  auto tail = mx::cumsum(mx::take(p, order, s), -1, false, true, s);
  auto cut = mx::less_equal(tail, mx::array(1.0f - top_p), s);
  // The most likely token is last in the order and always kept.
  auto last = mx::equal(
      mx::arange(x.shape(0), mx::int32, s), mx::array(x.shape(0) - 1), s);
  cut = mx::logical_and(cut, mx::logical_not(last, s), s);
  auto sorted = mx::where(cut, removed(), mx::take(kept, order, s), s);
  return mx::put_along_axis(kept, order, sorted, -1, s);
}

} // namespace

mx::array guide(const mx::array& logits, float weight, mx::Stream s) {
  auto rows = mx::astype(logits, mx::float32, s);
  int count = rows.shape(1);
  auto conditioned =
      mx::reshape(mx::slice(rows, {0, 0}, {1, count}, s), {-1}, s);
  if (rows.shape(0) == 1) {
    return conditioned;
  }
  auto free = mx::reshape(mx::slice(rows, {1, 0}, {2, count}, s), {-1}, s);
  auto difference = mx::subtract(conditioned, free, s);
  return mx::add(
      conditioned, mx::multiply(mx::array(weight), difference, s), s);
}

mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    ops::SamplingOrder order,
    mx::Stream s) {
  bool penalty_last = order == ops::SamplingOrder::penalty_last;
  float penalty = options.repetition_penalty;
  auto x = penalty_last ? logits : penalised(logits, seen, penalty, s);
  if (options.temperature < ops::kArgmaxTemperature) {
    auto best = mx::argmax(x, true, s);
    auto ids = mx::arange(x.shape(0), mx::uint32, s);
    return mx::where(mx::equal(ids, best, s), x, removed(), s);
  }
  x = mx::divide(x, mx::array(options.temperature), s);
  x = apply_min_p(apply_top_k(x, options.top_k, s), options.min_p, s);
  if (!penalty_last) {
    return apply_top_p(x, options.top_p, s);
  }
  // Without a cut, the penalty still sees what is too rare to draw.
  x = options.top_p < 1.0f ? apply_top_p(x, options.top_p, s) : x;
  return penalised(x, seen, penalty, s);
}

mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s) {
  uint32_t words[2] = {key.low, key.high};
  auto bits =
      mx::random::bits(logits.shape(), 4, mx::array(words, {2}, mx::uint32), s);
  auto u = mx::multiply(
      mx::add(
          mx::astype(
              mx::right_shift(bits, mx::array(9, mx::uint32), s),
              mx::float32,
              s),
          mx::array(0.5f),
          s),
      mx::array(0x1p-23f),
      s);
  auto gumbel = mx::negative(mx::log(mx::negative(mx::log(u, s), s), s), s);
  auto best = mx::argmax(mx::add(logits, gumbel, s), true, s);
  return mx::reshape(mx::astype(best, mx::int32, s), {1}, s);
}

mx::array forbid_token(const mx::array& logits, int token, mx::Stream s) {
  auto ids = mx::arange(logits.shape(0), mx::int32, s);
  return mx::where(mx::equal(ids, mx::array(token), s), removed(), logits, s);
}

mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s) {
  return mx::put_along_axis(seen, token, mx::array({1}, mx::uint8), 0, s);
}

} // namespace nightingale::reference
