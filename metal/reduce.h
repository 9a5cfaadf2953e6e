// Reductions over a threadgroup in two halves, so that several share a barrier:
// every SIMD group leaves its own result, and after the barrier every thread
// takes that of them all. `partial` has SIMDS slots.

template <typename T>
METAL_FUNC void leave_sum(T v, threadgroup T* partial, uint simd, uint lane) {
  v = simd_sum(v);
  if (lane == 0) partial[simd] = v;
}

template <int SIMDS, typename T>
METAL_FUNC T take_sum(threadgroup const T* partial, uint lane) {
  return simd_sum(lane < uint(SIMDS) ? partial[lane] : T(0));
}

template <typename T>
METAL_FUNC void leave_max(T v, threadgroup T* partial, uint simd, uint lane) {
  v = simd_max(v);
  if (lane == 0) partial[simd] = v;
}

template <int SIMDS, typename T>
METAL_FUNC T take_max(threadgroup const T* partial, uint lane) {
  return simd_max(partial[min(lane, uint(SIMDS - 1))]);
}

// The largest value and its index, the lowest one among equals.
METAL_FUNC void best_of_lanes(thread float& value, thread uint& index) {
  float best = simd_max(value);
  index = simd_min(value == best ? index : 0xffffffffu);
  value = best;
}

METAL_FUNC void leave_best(
    float value, uint index, threadgroup float* values, threadgroup uint* indices, uint simd,
    uint lane) {
  best_of_lanes(value, index);
  if (lane == 0) {
    values[simd] = value;
    indices[simd] = index;
  }
}

template <int SIMDS>
METAL_FUNC void take_best(
    threadgroup const float* values, threadgroup const uint* indices, uint lane,
    thread float& value, thread uint& index) {
  uint slot = min(lane, uint(SIMDS - 1));
  value = values[slot];
  index = indices[slot];
  best_of_lanes(value, index);
}
