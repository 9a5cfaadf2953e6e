// tile_conv: y = conv(rows) and what follows it: bias, Snake, residual, in float32.
// Rows and filters are rounded to T, 16 bits, as they are multiplied; sums are
// float32, in the order of taps and channels.
// before: [split, C], x: [count - split, C], one behind the other; w: [N, TAPS * C];
// bias, alpha: [N]; residual: rows from `shift` on of `earlier`, [divide, N], and
// residual, one behind the other → y: [results, N]: row r is that of the rows r +
// dilation * k - pad. kept: [keep, C] gets the last rows as they came; where keep is
// 0, a zero.
// A group makes DOWN by ACROSS patches, each by one SIMD group. What differs from
// chunk to chunk is in numbers, so that a new length compiles nothing.
// Reference: reference::conv1d.
//
// inputs: x before w bias alpha residual earlier rows window steps residual_span
// outputs: y kept
#include "snake.h"
#include "tile_windows.h"

//: kernel
constexpr int SIMDS = THREADS / 32, K = TAPS * C;
constexpr int HEIGHT = 16 * ROWS, WIDTH = 8 * COLUMNS; // of a patch
uint lane = thread_index_in_simdgroup;
int split = rows[0], count = rows[1], results = window[1];
int keep = steps[1] >> 2;
bool snaked = (steps[1] & 1) != 0, added = (steps[1] & 2) != 0;
WindowRows<T, C, float> windows;
windows.x = x;
windows.before = before;
windows.split = split;
windows.count = count;
windows.dilation = steps[0];
windows.pad = window[0];

for (int patch = int(simdgroup_index_in_threadgroup); patch < DOWN * ACROSS; patch += SIMDS) {
  int top = (int(threadgroup_position_in_grid.y) * DOWN + patch / ACROSS) * HEIGHT;
  int left = (int(threadgroup_position_in_grid.x) * ACROSS + patch % ACROSS) * WIDTH;
  if (top >= results) break;
  float sums[ROWS][COLUMNS][4];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) clear_sums<COLUMNS>(sums[i]);
  Patch<ROWS, COLUMNS, DEPTH, K>::add_product(windows, w + left * K, top, lane, sums);
#pragma unroll
  for (int i = 0; i < 2 * ROWS; ++i) {
    int row = top + 8 * i + tile_row(lane);
    if (row >= results) continue;
#pragma unroll
    for (int j = 0; j < COLUMNS / 4; ++j) {
      int column = left + 32 * j + 8 * tile_quarter(lane);
      float v[8], biases[8], more[8];
      load_octet(bias + column, biases);
#pragma unroll
      for (int e = 0; e < 8; ++e) v[e] = octet(sums[i / 2], j, i % 2, e) + biases[e];
      if (snaked) {
        load_octet(alpha + column, more);
#pragma unroll
        for (int e = 0; e < 8; ++e) v[e] = snake(v[e], more[e]);
      }
      if (added) {
        int at = row + residual_span[0];
        if (at < residual_span[1]) load_octet(earlier + (at * N + column), more);
        else load_octet(residual + ((at - residual_span[1]) * N + column), more);
#pragma unroll
        for (int e = 0; e < 8; ++e) v[e] = more[e] + v[e];
      }
      store_octet(y + (row * N + column), v);
    }
  }
}

int groups = int(threadgroups_per_grid.x * threadgroups_per_grid.y);
int group = int(threadgroup_position_in_grid.y * threadgroups_per_grid.x + threadgroup_position_in_grid.x);
int size = keep * C, from = (count - keep) * C, step = 4 * groups * THREADS;
for (int i = 4 * (group * THREADS + int(thread_index_in_threadgroup)); i < size; i += step) {
  float v[4];
  if (from + i < split * C) load<4>(before + (from + i), v);
  else load<4>(x + (from + i - split * C), v);
  store<4>(kept + i, v);
}
if (keep == 0 && group == 0 && thread_index_in_threadgroup == 0) kept[0] = 0.0f;
