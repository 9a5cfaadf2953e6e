// Eight weights that stand side by side. Addresses are multiples of what is
// loaded.
#include "pairs.h"

// As they came from memory, so that many can be under way at once.
#if HALF_ARRAYS
template <typename T> struct Raw8 {
  uint4 q;
  METAL_FUNC void fetch(const device T* p) thread { q = *(const device uint4*)p; }
  METAL_FUNC void unpack(thread float* v) const thread {
    unpack_pair<T>(q.x, v);
    unpack_pair<T>(q.y, v + 2);
    unpack_pair<T>(q.z, v + 4);
    unpack_pair<T>(q.w, v + 6);
  }
};
#else
template <typename T> struct Raw8;
#endif
#if FLOAT32
template <> struct Raw8<float> {
  float4 a, b;
  METAL_FUNC void fetch(const device float* p) thread {
    a = *(const device float4*)p;
    b = *(const device float4*)(p + 4);
  }
  METAL_FUNC void unpack(thread float* v) const thread {
    v[0] = a.x; v[1] = a.y; v[2] = a.z; v[3] = a.w;
    v[4] = b.x; v[5] = b.y; v[6] = b.z; v[7] = b.w;
  }
};
#endif

// As float32.
template <typename T> METAL_FUNC void load8(const device T* p, thread float* v) {
  Raw8<T> raw;
  raw.fetch(p);
  raw.unpack(v);
}

METAL_FUNC float sum8(thread const float* v) {
  return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]));
}

METAL_FUNC float dot8(thread const float* a, thread const float* b) {
  float even = a[0] * b[0], odd = a[1] * b[1];
  for (int i = 2; i < 8; i += 2) {
    even = fma(a[i], b[i], even);
    odd = fma(a[i + 1], b[i + 1], odd);
  }
  return even + odd;
}

#if BITS < 16
// Byte i of q as a float, by way of 2^23 + byte, whose last bits it is: GPUs
// convert integers at a fraction of the rate at which they add.
METAL_FUNC float byte_float(uint q, uint i) {
  return as_type<float>(with_byte(0x4b000000u, q, i)) - 8388608.0f;
}

// Eight quantized values of 8 or 4 bits, packed in uint, the first in the lowest bits.
#if BITS == 8
struct Quantized8 {
  uint2 q;
  METAL_FUNC void fetch(const device uint* p) thread { q = *(const device uint2*)p; }
  METAL_FUNC void unpack(thread float* v) const thread {
    for (uint i = 0; i < 4; ++i) {
      v[i] = byte_float(q.x, i);
      v[i + 4] = byte_float(q.y, i);
    }
  }
};
#else
struct Quantized8 {
  uint q;
  METAL_FUNC void fetch(const device uint* p) thread { q = *p; }
  METAL_FUNC void unpack(thread float* v) const thread {
    uint even = q & 0x0f0f0f0fu, odd = (q >> 4) & 0x0f0f0f0fu;
    for (uint i = 0; i < 4; ++i) {
      v[2 * i] = byte_float(even, i);
      v[2 * i + 1] = byte_float(odd, i);
    }
  }
};
#endif
#endif
