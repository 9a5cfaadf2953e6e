// What kernels see before their own header when MLX compiles them for Metal.

// What launch() calls for state: MLX hands every input in as const.
template <typename T> METAL_FUNC device T* writable(const device T* p) {
  return (device T*)p;
}
