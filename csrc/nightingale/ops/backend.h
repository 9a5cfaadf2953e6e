#pragma once

#include "mlx/array.h"
#include "mlx/stream.h"

namespace nightingale {

namespace mx = mlx::core;

namespace ops {

// Whether ops on `s` run on our CPU primitives, and not on kernels and MLX's
// own ops.
bool on_cpu(const mx::Stream& s);

// Whether the host should queue a step before it has read the previous one: on
// a GPU that hides launch overhead; on a CPU it only costs a wasted last step.
inline bool queues_ahead(const mx::Stream& s) {
  return !on_cpu(s);
}

// Whether results of up to kBatchInvariantRows rows are batch-invariant, so
// that positions checked together have the logits they would have one by one. A
// GPU computes two rows with our kernels and more with MLX's.
constexpr int kBatchInvariantRows = 16;
inline bool is_batch_invariant(const mx::Stream& s) {
  return on_cpu(s);
}

// The type of norms, biases and other vectors beside matrices of type
// `weights`: the CPU computes in float32 whatever the weights are.
inline mx::Dtype vector_dtype(mx::Dtype weights, const mx::Stream& s) {
  return on_cpu(s) ? mx::float32 : weights;
}

// The type of activations in products with weights of type `weights`, or with
// quantized ones where `bits` is not 0. A GPU multiplies in the weights' type;
// the CPU in float32, or in bfloat16 for quantized weights and those of that
// type, on a processor that multiplies it.
mx::Dtype product_dtype(mx::Dtype weights, int bits, const mx::Stream& s);

// `x`, evaluated: for arrays that a model derives from its weights when it is
// loaded. Evaluated later, they would need the stream of the loading thread.
mx::array computed(mx::array x);

// Called between utterances: returns the buffers that the CPU ops keep for
// reuse to the system, unless lanes are about to use them. On a GPU MLX's own
// cache stays.
void release_idle_memory(const mx::Stream& s);

} // namespace ops
} // namespace nightingale
