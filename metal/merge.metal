// merge: the first rows of two or three queues added up, or leaky_relu of their
// mean, and the rest of each. A queue is `before_*`, then what is `fresh_*`.
// All: [1, rows, columns] → y: [1, count, columns]; kept_*: [1, .., columns], or
// a zero where nothing is left. mode: the number of queues, and the slope's
// bits, 0 for the plain sum.
// Joining the queues first, and cutting them after, took three launches a queue.
// Reference: ops::whole, mx::add, mx::divide, ops::leaky_relu, ops::cut.
//
// inputs: fresh_a before_a fresh_b before_b fresh_c before_c extent at_a at_b at_c mode
// outputs: y kept_a kept_b kept_c
#include "quads.h"

// Elements i of a queue, whose first part has `split`.
template <int WIDTH>
METAL_FUNC void load_row(
    const device float* before, const device float* fresh, int split, int i, thread float* v) {
  if (i < split) load<WIDTH>(before + i, v);
  else load<WIDTH>(fresh + (i - split), v);
}

//: kernel
constexpr int CHUNK = 1024; // elements of a group
int size = extent[0], longest = extent[1], parts = mode[0];
float slope = as_type<float>(mode[1]);
int begin = int(threadgroup_position_in_grid.x) * CHUNK, end = min(begin + CHUNK, longest);
for (int i = begin + int(thread_index_in_threadgroup) * WIDTH; i < end; i += THREADS * WIDTH) {
  float a[4], b[4], c[4];
  if (i < at_a[1]) load_row<WIDTH>(before_a, fresh_a, at_a[0], i, a);
  if (i < at_b[1]) load_row<WIDTH>(before_b, fresh_b, at_b[0], i, b);
  if (parts > 2 && i < at_c[1]) load_row<WIDTH>(before_c, fresh_c, at_c[0], i, c);
  if (i < size) {
    for (int j = 0; j < WIDTH; ++j) {
      float sum = a[j] + b[j];
      if (parts > 2) sum += c[j];
      if (slope > 0.0f) sum /= float(parts);
      a[j] = slope > 0.0f && !(sum > 0.0f) ? slope * sum : sum;
    }
    store<WIDTH>(y + i, a);
  } else {
    if (i < at_a[1]) store<WIDTH>(kept_a + (i - size), a);
    if (i < at_b[1]) store<WIDTH>(kept_b + (i - size), b);
    if (parts > 2 && i < at_c[1]) store<WIDTH>(kept_c + (i - size), c);
  }
}
if (begin + int(thread_index_in_threadgroup) == 0) {
  if (at_a[1] == size) kept_a[0] = 0.0f;
  if (at_b[1] == size) kept_b[0] = 0.0f;
  if (parts < 3 || at_c[1] == size) kept_c[0] = 0.0f;
}
