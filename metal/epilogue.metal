// epilogue: what a product goes through before it is stored: bias, activation,
// Snake, residual, in float32, then the cast to the result's type.
// y: [size], rows of `columns`; bias, alpha: [columns]; residual: [size], or
// elements [shift, shift + size) of `before`, [split], and `residual` behind it.
// One pass over memory is all it costs: four elements a thread and step. Which
// parts there are is in numbers, not in constants: the branches cost nothing,
// compiling for each of them does.
// Reference: reference::apply_epilogue.
//
// inputs: y bias alpha residual before extent residual_span
// outputs: out
#include "activations.h"
#include "quads.h"
#include "snake.h"

//: kernel
constexpr int CHUNK = 1024; // elements of a group
int columns = extent[0] & 0xffffff, parts = extent[0] >> 24, size = extent[1];
bool biased = (parts & 1) != 0, snaked = (parts & 2) != 0;
bool added = (parts & 4) != 0, in_two = (parts & 8) != 0;
int begin = int(threadgroup_position_in_grid.x) * CHUNK;
int end = min(begin + CHUNK, size);
for (int i = begin + int(thread_index_in_threadgroup) * WIDTH; i < end; i += THREADS * WIDTH) {
  int column = i % columns;
  float v[4], r[4];
  for (int j = 0; j < 4; ++j) r[j] = 0.0f;
  load<WIDTH>(y + i, v);
  if (added) {
    int at = in_two ? i + residual_span[0] : i, split = in_two ? residual_span[1] : 0;
    if (at < split) load<WIDTH>(before + at, r);
    else load<WIDTH>(residual + (at - split), r);
  }
  for (int j = 0; j < WIDTH; ++j) {
    float u = v[j];
    if (biased) u += float(bias[column + j]);
    u = activated<ACTIVATION>(u);
    if (snaked) u = snake(u, float(alpha[column + j]));
    v[j] = added ? r[j] + u : u;
  }
  store<WIDTH>(out + i, v);
}
