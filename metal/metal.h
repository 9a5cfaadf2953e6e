// What kernels see before their own header when MLX compiles them for Metal.

// What launch() calls for state: MLX hands every input in as const.
template <typename T> METAL_FUNC device T* writable(const device T* p) {
  return (device T*)p;
}

// What weights.h stands on: byte i of q below the other three bytes of `high`.
METAL_FUNC uint with_byte(uint high, uint q, uint i) {
  return (high & 0xffffff00u) | ((q >> (8u * i)) & 255u);
}
