#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct RandomWords;

} // namespace

mx::array
normal_noise(const DrawPosition& first, int rows, int columns, mx::Stream s) {
  return make_op(
      "NormalNoise",
      {{rows, columns}},
      {},
      [=](const Arrays&, Arrays& out) {
        const SignalLoops& loops = simd().signal;
        parallel_for(rows, [&](int row) {
          auto at = first;
          at.position += row;
          uint32_t* words = scratch<RandomWords, uint32_t>(columns);
          loops.random_words(draw_key(at), columns, words);
          loops.normals(
              words, columns, out[0].data<float>() + int64_t(row) * columns);
        });
      },
      s);
}

} // namespace nightingale::cpu
