#include <bit>

#include "nightingale/backends/gpu/epilogue.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/backends/gpu/row_parts.h"

namespace nightingale::gpu {

mx::array
activate(const mx::array& x, ops::Activation activation, mx::Stream s) {
  return apply_epilogue(x, x, {.activation = activation}, s);
}

mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s) {
  if (!has_kernels(s) || !is_device_array(x)) {
    return reference::leaky_relu(x, slope, s);
  }
  int size = x.size();
  return launch_one(
      {.kernel = "leaky_relu",
       .inputs = {x, pair(size, std::bit_cast<int>(slope))},
       .outputs = {{x.shape(), x.dtype()}},
       .constants = {{"WIDTH", width_of(size)}},
       .groups = {chunks_of(size), 1, 1},
       .threads = kChunkThreads},
      s);
}

mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s) {
  return apply_epilogue(x, x, {.snake = alpha}, s);
}

} // namespace nightingale::gpu
