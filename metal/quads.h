// Numbers that stand side by side, as float32: four at once where WIDTH is 4,
// at addresses that are multiples of their size together, else one.
#include "pairs.h"

METAL_FUNC void load4(const device float* p, thread float* v) {
  float4 q = *(const device float4*)p;
  v[0] = q.x; v[1] = q.y; v[2] = q.z; v[3] = q.w;
}

template <typename T> METAL_FUNC void load4(const device T* p, thread float* v) {
  uint2 q = *(const device uint2*)p;
  unpack_pair<T>(q.x, v);
  unpack_pair<T>(q.y, v + 2);
}

METAL_FUNC void store4(device float* p, thread const float* v) {
  float4 q;
  q.x = v[0]; q.y = v[1]; q.z = v[2]; q.w = v[3];
  *(device float4*)p = q;
}

template <typename T> METAL_FUNC uint half_bits(float a, float b) {
  return uint(as_type<ushort>(T(a))) | uint(as_type<ushort>(T(b))) << 16;
}

template <typename T> METAL_FUNC void store4(device T* p, thread const float* v) {
  uint2 q;
  q.x = half_bits<T>(v[0], v[1]);
  q.y = half_bits<T>(v[2], v[3]);
  *(device uint2*)p = q;
}

template <int WIDTH, typename T>
METAL_FUNC void load(const device T* p, thread float* v) {
  if (WIDTH == 4) load4(p, v);
  else v[0] = float(p[0]);
}

template <int WIDTH, typename T>
METAL_FUNC void store(device T* p, thread const float* v) {
  if (WIDTH == 4) store4(p, v);
  else p[0] = T(v[0]);
}
