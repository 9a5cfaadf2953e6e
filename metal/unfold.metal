// unfold: the windows of a convolution, one in a row, so that a matrix product
// with the weights is all that is left of it.
// before: [B, split, C], x: [B, count - split, C], one behind the other; alpha:
// [C] → y: [B, results, taps, C]: y[b, r, k] is row stride * r + dilation * k -
// pad, through Snake if steps says so, or zeros beyond the ends. kept: [B, keep,
// C] gets the last rows as they came; where keep is 0, a zero.
// A thread takes its elements once and writes them to every window: reading
// them for every window cost as many sines as there are taps. What a layer does
// is in numbers, not in constants: compiling takes longer than it saves.
// Reference: reference::conv1d's padding, and mx::concatenate, mx::slice.
//
// inputs: x before alpha steps rows window
// outputs: y kept
#include "quads.h"
#include "snake.h"

//: kernel
constexpr int CHUNK = 1024; // elements of a group
int channels = steps[0] & 32767, keep = steps[0] >> 16;
bool snaked = (steps[0] & 32768) != 0;
int stride = steps[1] & 1023, dilation = (steps[1] >> 10) & 1023, taps = steps[1] >> 20;
int split = rows[0], count = rows[1], pad = window[0], results = window[1];
int batch = int(threadgroup_position_in_grid.z), group = int(threadgroup_position_in_grid.x);
int thread_id = int(thread_index_in_threadgroup);
auto older = before + batch * split * channels;
auto newer = x + batch * (count - split) * channels;
auto windows = y + batch * results * taps * channels;
int size = ((results - 1) * stride + (taps - 1) * dilation + 1) * channels;
int begin = group * CHUNK, end = min(begin + CHUNK, size);
// Where taps lie side by side, every stride-th of them meets a row.
int tap_step = dilation == 1 ? stride : 1;
for (int i = begin + thread_id * WIDTH; i < end; i += THREADS * WIDTH) {
  int position = i / channels, column = i - position * channels, row = position - pad;
  float v[4];
  for (int j = 0; j < 4; ++j) v[j] = 0.0f;
  if (row >= 0 && row < count) {
    if (row < split) load<WIDTH>(older + row * channels + column, v);
    else load<WIDTH>(newer + (row - split) * channels + column, v);
    if (snaked)
      for (int j = 0; j < WIDTH; ++j) v[j] = snake(v[j], float(alpha[column + j]));
  }
  for (int tap = position % tap_step; tap < taps; tap += tap_step) {
    int at = position - tap * dilation;
    if (at < 0) break;
    int result = stride == 1 ? at : at / stride;
    if (result < results && result * stride == at)
      store<WIDTH>(windows + (result * taps + tap) * channels + column, v);
  }
}
int kept_size = keep * channels, from = (count - keep) * channels, split_at = split * channels;
int step = int(threadgroups_per_grid.x) * THREADS * WIDTH;
for (int i = (group * THREADS + thread_id) * WIDTH; i < kept_size; i += step) {
  int at = from + i;
  float v[4];
  if (at < split_at) load<WIDTH>(older + at, v);
  else load<WIDTH>(newer + (at - split_at), v);
  store<WIDTH>(kept + batch * kept_size + i, v);
}
if (keep == 0 && group + batch + thread_id == 0) {
  float zero = 0.0f;
  store<1>(kept, &zero);
}
