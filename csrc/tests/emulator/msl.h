// The Metal Shading Language as C++, for the kernels of metal/. Each is
// compiled twice: with MSL_TYPED address spaces are part of the types, so that
// one that is missing or wrong is an error; without, the kernel runs in the
// emulator.
#pragma clang system_header

#include "machine.h"

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef _Float16 half;
typedef _Float16 float16_t;
typedef __bf16 bfloat16_t;

#define MSL_VECTOR(T, N) typedef T T##N __attribute__((ext_vector_type(N)))
MSL_VECTOR(float, 2);
MSL_VECTOR(float, 4);
MSL_VECTOR(half, 2);
MSL_VECTOR(half, 4);
MSL_VECTOR(int, 2);
MSL_VECTOR(int, 4);
MSL_VECTOR(uint, 2);
MSL_VECTOR(uint, 3);
MSL_VECTOR(uint, 4);
#undef MSL_VECTOR

#ifdef MSL_TYPED
#define device __attribute__((address_space(1)))
#define constant __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#else
#define device
#define constant
#define threadgroup
#endif
#define thread
#define METAL_FUNC __attribute__((always_inline)) inline
#define INFINITY __builtin_huge_valf()

namespace msl {

template <typename V, typename A>
METAL_FUNC V vector(A a) {
  return (V)a;
}
template <typename V, typename A, typename B>
METAL_FUNC V vector(A a, B b) {
  V v;
  v.x = a;
  v.y = b;
  return v;
}
template <typename V, typename A, typename B, typename C, typename D>
METAL_FUNC V vector(A a, B b, C c, D d) {
  V v;
  v.x = a;
  v.y = b;
  v.z = c;
  v.w = d;
  return v;
}

} // namespace msl

#define float2(...) msl::vector<float2>(__VA_ARGS__)
#define float4(...) msl::vector<float4>(__VA_ARGS__)
#define half2(...) msl::vector<half2>(__VA_ARGS__)
#define half4(...) msl::vector<half4>(__VA_ARGS__)
#define int2(...) msl::vector<int2>(__VA_ARGS__)
#define int4(...) msl::vector<int4>(__VA_ARGS__)
#define uint2(...) msl::vector<uint2>(__VA_ARGS__)
#define uint4(...) msl::vector<uint4>(__VA_ARGS__)

// What launch() calls for state: MLX hands every input in as const.
template <typename T>
METAL_FUNC device T* writable(const device T* p) {
  return const_cast<device T*>(p);
}

template <typename To, typename From>
METAL_FUNC To as_type(From v) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  return __builtin_bit_cast(To, v);
}

// Both arguments have one type, as in MSL. Numbers win against NaN.
template <typename T>
METAL_FUNC T min(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
METAL_FUNC T max(T a, T b) {
  return a < b ? b : a;
}
template <>
METAL_FUNC float min(float a, float b) {
  return a != a || b < a ? b : a;
}
template <>
METAL_FUNC float max(float a, float b) {
  return a != a || a < b ? b : a;
}
template <typename T>
METAL_FUNC T clamp(T v, T low, T high) {
  return min(max(v, low), high);
}
template <typename T>
METAL_FUNC T select(T a, T b, bool second) {
  return second ? b : a;
}
METAL_FUNC int abs(int v) {
  return v < 0 ? -v : v;
}
METAL_FUNC uint popcount(uint v) {
  return __builtin_popcount(v);
}

// metal/metal.h has it as this, and metal/cuda.h as one instruction.
METAL_FUNC uint with_byte(uint high, uint q, uint i) {
  return (high & 0xffffff00u) | ((q >> (8u * i)) & 255u);
}

extern "C" {
float expf(float);
float logf(float);
float sinf(float);
float cosf(float);
float tanhf(float);
float floorf(float);
float rintf(float);
float exp2f(float);
float fmaf(float, float, float);
}

// Of float only: a half would be rounded before and after in MSL.
#define MSL_FLOAT_FUNCTION(name, value) \
  template <typename T>                 \
  float name(T) = delete;               \
  METAL_FUNC float name(float v) {      \
    return value;                       \
  }
#define MSL_PRECISE_FUNCTION(name, value) \
  MSL_FLOAT_FUNCTION(name, value)         \
  namespace precise {                     \
  MSL_FLOAT_FUNCTION(name, value)         \
  }
MSL_PRECISE_FUNCTION(exp, expf(v))
MSL_PRECISE_FUNCTION(log, logf(v))
MSL_PRECISE_FUNCTION(sin, sinf(v))
MSL_PRECISE_FUNCTION(cos, cosf(v))
MSL_PRECISE_FUNCTION(tanh, tanhf(v))
MSL_PRECISE_FUNCTION(sqrt, __builtin_sqrtf(v))
MSL_PRECISE_FUNCTION(rsqrt, 1.0f / __builtin_sqrtf(v))
namespace fast {
MSL_FLOAT_FUNCTION(exp2, exp2f(v))
}
MSL_FLOAT_FUNCTION(floor, floorf(v))
MSL_FLOAT_FUNCTION(rint, rintf(v))
MSL_FLOAT_FUNCTION(abs, __builtin_fabsf(v))
#undef MSL_PRECISE_FUNCTION
#undef MSL_FLOAT_FUNCTION

METAL_FUNC float fma(float a, float b, float c) {
  return fmaf(a, b, c);
}
METAL_FUNC bool isnan(float v) {
  return v != v;
}
METAL_FUNC bool isinf(float v) {
  return __builtin_fabsf(v) == INFINITY;
}

enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
};
METAL_FUNC mem_flags operator|(mem_flags a, mem_flags b) {
  return mem_flags(uint(a) | uint(b));
}

namespace msl {

using nightingale::emulator::Exchange;
using nightingale::emulator::Number;

// The compiler may neither copy a call nor make one of two: threads meet in the
// machine code where they do in the source.
__attribute__((convergent, nomerge)) unsigned
exchange(Exchange operation, Number type, uint value, uint argument, int line);

METAL_FUNC float exchange(Exchange op, float v, uint argument, int line) {
  return as_type<float>(
      exchange(op, Number::real, as_type<uint>(v), argument, line));
}
METAL_FUNC int exchange(Exchange op, int v, uint argument, int line) {
  return int(exchange(op, Number::integer, uint(v), argument, line));
}
METAL_FUNC uint exchange(Exchange op, uint v, uint argument, int line) {
  return exchange(op, Number::natural, v, argument, line);
}

} // namespace msl

METAL_FUNC void threadgroup_barrier(
    mem_flags flags,
    int line = __builtin_LINE()) {
  msl::exchange(
      msl::Exchange::threadgroup_barrier,
      msl::Number::none,
      0,
      uint(flags),
      line);
}
METAL_FUNC void simdgroup_barrier(
    mem_flags flags,
    int line = __builtin_LINE()) {
  msl::exchange(
      msl::Exchange::simdgroup_barrier,
      msl::Number::none,
      0,
      uint(flags),
      line);
}

#define MSL_REDUCTION(name)                                 \
  template <typename T>                                     \
  METAL_FUNC T name(T v, int line = __builtin_LINE()) {     \
    return msl::exchange(msl::Exchange::name, v, 0u, line); \
  }
MSL_REDUCTION(simd_sum)
MSL_REDUCTION(simd_max)
MSL_REDUCTION(simd_min)
#undef MSL_REDUCTION

#define MSL_SHUFFLE(name)                                                \
  template <typename T>                                                  \
  METAL_FUNC T name(T v, ushort argument, int line = __builtin_LINE()) { \
    return msl::exchange(msl::Exchange::name, v, argument, line);        \
  }
MSL_SHUFFLE(simd_shuffle)
MSL_SHUFFLE(simd_shuffle_xor)
MSL_SHUFFLE(simd_shuffle_down)
MSL_SHUFFLE(simd_broadcast)
#undef MSL_SHUFFLE

namespace msl {

__attribute__((convergent, nomerge)) void exchange_tiles(
    const nightingale::emulator::TileRegisters& tiles,
    int line);

template <typename T>
METAL_FUNC void unpack(uint pair, float* values) {
  values[0] = float(as_type<T>(ushort(pair & 0xffffu)));
  values[1] = float(as_type<T>(ushort(pair >> 16)));
}

} // namespace msl

// What metal/tiles.h stands on: the layout is CUDA's.
METAL_FUNC int tile_row(uint lane) {
  return int(lane >> 2);
}
METAL_FUNC int tile_quarter(uint lane) {
  return int(lane & 3u);
}
METAL_FUNC uint tile_far_lane() {
  return 2u;
}

template <typename T>
METAL_FUNC void multiply_tiles(
    uint4 top,
    uint4 bottom,
    uint4 columns,
    uint,
    thread float* sums,
    int line = __builtin_LINE()) {
  nightingale::emulator::TileRegisters tiles;
  for (int i = 0; i < 2; ++i) {
    for (int high = 0; high < 2; ++high) {
      msl::unpack<T>(top[2 * i + high], tiles.a[i][2 * high]);
      msl::unpack<T>(bottom[2 * i + high], tiles.a[i][2 * high + 1]);
      msl::unpack<T>(columns[2 * i + high], tiles.b[i][high]);
    }
  }
  tiles.sums = sums;
  msl::exchange_tiles(tiles, line);
}

#ifndef MSL_TYPED
#include "hooks.h"
#endif
