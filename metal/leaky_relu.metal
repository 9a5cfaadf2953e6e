// leaky_relu: x above 0, slope * x below, four elements a thread and step where
// their number allows it. extent: that number, and the slope's bits.
// Reference: reference::leaky_relu.
//
// inputs: x extent
// outputs: y
#include "quads.h"

//: kernel
constexpr int CHUNK = 1024; // elements of a group
float slope = as_type<float>(extent[1]);
int begin = int(threadgroup_position_in_grid.x) * CHUNK, end = min(begin + CHUNK, extent[0]);
for (int i = begin + int(thread_index_in_threadgroup) * WIDTH; i < end; i += THREADS * WIDTH) {
  float v[4];
  load<WIDTH>(x + i, v);
  for (int j = 0; j < WIDTH; ++j) v[j] = v[j] > 0.0f ? v[j] : slope * v[j];
  store<WIDTH>(y + i, v);
}
