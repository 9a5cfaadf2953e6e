#include "mlx/ops.h"
#include "nightingale/backends/reference/ops.h"

namespace nightingale::reference {

namespace {

using mx::array;

// One element of a state array, as [1].
array at(const array& state, int place, mx::Stream s) {
  return mx::slice(state, {place}, {place + 1}, s);
}

// Columns [begin, end) of [R, S], clipped to it; zero where none are left.
array peak(const array& rows, int begin, int end, mx::Stream s) {
  begin = std::max(begin, 0);
  if (begin >= end) {
    return mx::zeros({1}, mx::float32, s);
  }
  auto part = mx::slice(rows, {0, begin}, {rows.shape(0), end}, s);
  return mx::reshape(mx::max(part, s), {1}, s);
}

array column(const array& row, int index, mx::Stream s) {
  return index < 0
      ? mx::zeros({1}, mx::float32, s)
      : mx::reshape(mx::slice(row, {0, index}, {1, index + 1}, s), {1}, s);
}

array flag(const array& condition, int value, mx::Stream s) {
  return mx::where(condition, array(value), array(0), s);
}

array as_flag(const array& mark, mx::Stream s) {
  return mx::greater(mark, array(0), s);
}

} // namespace

ops::AlignmentStep alignment_step(
    const ops::AlignmentInput& input,
    const ops::AlignmentState& state,
    mx::Stream s) {
  const auto& [weights, logits, token, stop_token, limits] = input;
  int rows = weights[0].shape(0), text = weights[0].shape(1);
  auto frame = at(state.marks, ops::kFrame, s);
  auto mean = mx::mean(mx::stack(weights, 0, s), 0, false, s);
  auto shown = mx::less_equal(mx::arange(text, mx::int32, s), frame, s);
  mean = mx::where(shown, mean, array(0.0f), s);
  auto last = mx::slice(mean, {rows - 1, 0}, {rows, text}, s);

  auto position = mx::reshape(
      mx::astype(mx::argmax(last, -1, false, s), mx::int32, s), {1}, s);
  auto text_position = at(state.marks, ops::kTextPosition, s);
  auto jump = mx::subtract(position, text_position, s);
  auto near = mx::logical_and(
      mx::greater(jump, array(-4), s), mx::less(jump, array(7), s), s);
  text_position = mx::where(near, position, text_position, s);

  auto opening = mx::maximum(
      at(state.sums, ops::kOpeningPeak, s),
      peak(mean, 0, std::min(text, 4), s),
      s);
  auto ending = peak(last, text - 2, text, s);
  auto previous_ending = rows > 1 ? peak(mean, text - 2, text, s)
                                  : at(state.sums, ops::kEndingPeak, s);
  auto unsettled = mx::logical_or(
      mx::greater(mx::maximum(ending, previous_ending, s), array(0.1f), s),
      mx::less(opening, array(0.5f), s),
      s);
  auto started = mx::logical_or(
      as_flag(at(state.marks, ops::kStarted, s), s),
      mx::logical_not(unsettled, s),
      s);

  auto was_complete = as_flag(at(state.marks, ops::kComplete, s), s);
  auto counted = mx::astype(was_complete, mx::float32, s);
  auto add_counted = [&](int place, const array& value) {
    return mx::add(
        at(state.sums, place, s), mx::multiply(counted, value, s), s);
  };
  auto tail0 = add_counted(ops::kTail0, column(last, text - 3, s));
  auto tail1 = add_counted(ops::kTail1, column(last, text - 2, s));
  auto tail2 = add_counted(ops::kTail2, column(last, text - 1, s));
  auto repeated = add_counted(ops::kRepeated, peak(last, 0, text - 5, s));
  auto complete = mx::logical_or(
      was_complete, mx::greater_equal(text_position, array(text - 3), s), s);

  array after_end(limits.after_end);
  auto longest = mx::maximum(mx::maximum(tail0, tail1, s), tail2, s);
  auto long_tail =
      mx::logical_and(complete, mx::greater_equal(longest, after_end, s), s);
  auto text_repetition =
      mx::logical_and(complete, mx::greater(repeated, after_end, s), s);
  auto token_count = mx::add(at(state.marks, ops::kTokenCount, s), array(1), s);
  auto token_repetition = mx::logical_and(
      mx::greater_equal(token_count, array(limits.first_repeat), s),
      mx::equal(token, at(state.marks, ops::kLastToken, s), s),
      s);
  auto faults = mx::add(
      mx::add(
          flag(long_tail, ops::kLongTail, s),
          flag(text_repetition, ops::kTextRepetition, s),
          s),
      flag(token_repetition, ops::kTokenRepetition, s),
      s);
  auto early = mx::less(frame, array(limits.first_stop), s);
  faults = mx::where(early, array(0), faults, s);
  auto suppress = text > 5
      ? mx::logical_or(early, mx::less(position, array(text - 3), s), s)
      : early;

  array never(-32768.0f), always(32768.0f);
  auto is_stop = mx::equal(
      mx::arange(logits.shape(0), mx::int32, s), array(stop_token), s);
  auto guarded =
      mx::where(mx::logical_and(is_stop, suppress, s), never, logits, s);
  auto result = mx::where(
      as_flag(faults, s), mx::where(is_stop, always, never, s), guarded, s);

  auto marks = mx::concatenate(
      {mx::add(frame, array(1), s),
       text_position,
       flag(started, 1, s),
       flag(complete, 1, s),
       token,
       token_count,
       flag(suppress, 1, s),
       faults},
      0,
      s);
  auto sums =
      mx::concatenate({opening, ending, tail0, tail1, tail2, repeated}, 0, s);
  return {result, {marks, sums}};
}

} // namespace nightingale::reference
