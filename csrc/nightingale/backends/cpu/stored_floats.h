#pragma once

#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/scratch.h"

// Runs of elements of a row-major array as float32, whatever its floating type.

namespace nightingale::cpu {

struct ReadFloats;
struct WrittenFloats;

// The elements [begin, begin + count) of x: its own, or converted ones that
// last until the calling thread reads the next.
inline const float* read_floats(const mx::array& x, int64_t begin, int count) {
  Storage storage = storage_of(x);
  if (storage == Storage::f32) {
    return x.data<float>() + begin;
  }
  float* floats = scratch<ReadFloats>(count);
  simd().unpack[static_cast<int>(storage)](
      x.data<char>() + begin * storage_bytes(storage), count, floats);
  return floats;
}

// Calls fill(p), which writes the elements [begin, begin + count) of y to p.
template <typename F>
void write_floats(mx::array& y, int64_t begin, int count, F fill) {
  Storage storage = storage_of(y);
  if (storage == Storage::f32) {
    fill(y.data<float>() + begin);
    return;
  }
  float* floats = scratch<WrittenFloats>(count);
  fill(floats);
  simd().pack[static_cast<int>(storage)](
      floats, count, y.data<char>() + begin * storage_bytes(storage));
}

} // namespace nightingale::cpu
