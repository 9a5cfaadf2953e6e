#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mlx/array.h"
#include "mlx/primitives.h"
#include "mlx/stream.h"
#include "nightingale/backends/cpu/simd.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/ops/backend.h"

namespace nightingale::cpu {

using Arrays = std::vector<mx::array>;

// The work of one op: reads inputs, fills outputs, on the stream's thread.
using Work = std::function<void(const Arrays& inputs, Arrays& outputs)>;

struct Output {
  mx::Shape shape;
  mx::Dtype dtype = mx::float32;
  // Index of the input whose buffer the output is written into, for state that
  // is updated in place (caches); otherwise the output gets a fresh buffer.
  std::optional<int> in_place_of = std::nullopt;
};

// How many ops have thrown on a stream's thread so far, where nobody can catch
// it, and what the last one said. The results of such an op are zeros. Those of
// side streams are not among them.
uint64_t failed_ops();
std::string last_failure();

// A CPU stream for the thread that makes it, which lasts as long as the
// process. None of its ops is spread over other threads.
class SideStream {
 public:
  SideStream();

  const mx::Stream& stream() const {
    return stream_;
  }

  // What an op said that has thrown since the last call, once all have run;
  // empty where none has.
  std::string take_failure();

 private:
  mx::Stream stream_;
  std::unique_ptr<std::string> failure_;
};

// From now on every op that is about to run throws an Error instead.
void stop_ops();

// Builds the graph node of a CPU op. `name` must be a string literal. Work that
// does not read strides takes its inputs through dense().
Arrays make_ops(
    const char* name,
    std::vector<Output> outputs,
    Arrays inputs,
    Work work,
    mx::Stream s);

mx::array make_op(
    const char* name,
    Output output,
    Arrays inputs,
    Work work,
    mx::Stream s);

// `x` in row-major order, copied only where it is not so already; `as_float`
// also converts it to float32.
mx::array dense(const mx::array& x, mx::Stream s);
mx::array as_float(const mx::array& x, mx::Stream s);

// Token ids as a row-major int32 array.
mx::array as_ids(const mx::array& x, mx::Stream s);

// `x` with its last axis contiguous, for work that reads the strides of the
// others: a part of a wider array is then not copied. `as_rows` also converts
// it to float32.
mx::array dense_rows(const mx::array& x, mx::Stream s);
mx::array as_rows(const mx::array& x, mx::Stream s);

// How the elements of a floating-point type are stored; an Error for others.
Storage storage_of(mx::Dtype dtype);

inline Storage storage_of(const mx::array& x) {
  return storage_of(x.dtype());
}

// The elements of a row-major array as float32: its own, or converted ones that
// last until the calling thread asks for the next.
const float* floats_of(const mx::array& x);

// Product of all dimensions but the last.
int row_count(const mx::array& x);

// Start of element [b, t, 0] of a [B, T, C] view whose last axis is contiguous.
template <typename T>
const T* row_of(const mx::array& x, int b, int t) {
  return x.data<T>() + b * x.strides(0) + t * x.strides(1);
}

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
