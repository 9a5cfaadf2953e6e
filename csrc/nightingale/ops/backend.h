#pragma once

#include "mlx/array.h"
#include "mlx/stream.h"

namespace nightingale {

namespace mx = mlx::core;

namespace ops {

// Whether `s` runs on our CPU primitives; everywhere else kernels and MLX's own
// ops run.
bool on_cpu(const mx::Stream& s);

// From now on CPU streams run what a GPU would: how that is tested without one.
void treat_cpu_as_gpu(bool yes);

// To be called before the first stream on a GPU. On CUDA MLX counts what its
// caches of graphs and of attention's plans miss, as long as the process lives,
// and after some hundreds throws at every further one: texts of many lengths
// come to that. After this they only forget the oldest, unless the environment
// has it otherwise.
void disable_mlx_cache_thrash_check();

// Whether the host should queue a step before it has read the one before: on a
// GPU that hides the launches; on a CPU it only costs a wasted last step.
inline bool queues_ahead(const mx::Stream& s) {
  return !on_cpu(s);
}

// Whether a row of up to kBatchInvariantRows has the same bits in any company,
// so that positions checked together have the logits they would have one by
// one. A GPU takes a step's two rows by kernels of its own and more of them by
// MLX's.
constexpr int kBatchInvariantRows = 16;
inline bool is_batch_invariant(const mx::Stream& s) {
  return on_cpu(s);
}

// The type in which norms, biases and other vectors are kept beside matrices of
// type `weights`: the CPU computes in float32 whatever the weights are.
inline mx::Dtype vector_dtype(mx::Dtype weights, const mx::Stream& s) {
  return on_cpu(s) ? mx::float32 : weights;
}

// The type in which activations enter products with weights of type `weights`.
// A GPU multiplies in the weights' type; the CPU in float32, or in bfloat16
// where weights of that type meet a processor that has matrix units for it.
mx::Dtype product_dtype(mx::Dtype weights, const mx::Stream& s);

// `x` with its values: what a model makes of its weights when it is loaded.
// Left for later, that would need the thread that made it, as MLX's streams do.
mx::array computed(mx::array x);

// Called between utterances: what the ops kept for the next one of the same
// lengths goes back to the system. On a GPU MLX's own cache stays.
void release_idle_memory(const mx::Stream& s);

} // namespace ops
} // namespace nightingale
