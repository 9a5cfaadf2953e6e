// The words of the Metal Shading Language, as CUDA has them. Kernels see this
// before their own header when MLX compiles them for an NVIDIA GPU.

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
typedef __nv_bfloat16 bfloat16_t;

#define device
#define constant
#define thread
#define threadgroup
#define METAL_FUNC __device__ __forceinline__

#define threadgroup_position_in_grid blockIdx
#define threadgroups_per_grid gridDim
#define thread_index_in_threadgroup threadIdx.x
#define thread_index_in_simdgroup (threadIdx.x & 31u)
#define simdgroup_index_in_threadgroup (threadIdx.x >> 5)

enum class mem_flags { mem_none, mem_device, mem_threadgroup };
METAL_FUNC void threadgroup_barrier(mem_flags) { __syncthreads(); }
METAL_FUNC void simdgroup_barrier(mem_flags) { __syncwarp(); }

template <typename T> METAL_FUNC T simd_shuffle(T v, uint lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
template <typename T> METAL_FUNC T simd_broadcast(T v, uint lane) {
  return __shfl_sync(0xffffffffu, v, lane);
}
template <typename T> METAL_FUNC T simd_shuffle_xor(T v, uint mask) {
  return __shfl_xor_sync(0xffffffffu, v, mask);
}
template <typename T> METAL_FUNC T simd_shuffle_down(T v, uint delta) {
  return __shfl_down_sync(0xffffffffu, v, delta);
}
template <typename T> METAL_FUNC T simd_sum(T v) {
  for (uint mask = 16; mask > 0; mask >>= 1) v += simd_shuffle_xor(v, mask);
  return v;
}
template <typename T> METAL_FUNC T simd_max(T v) {
  for (uint mask = 16; mask > 0; mask >>= 1) v = max(v, simd_shuffle_xor(v, mask));
  return v;
}
template <typename T> METAL_FUNC T simd_min(T v) {
  for (uint mask = 16; mask > 0; mask >>= 1) v = min(v, simd_shuffle_xor(v, mask));
  return v;
}

template <typename To, typename From> METAL_FUNC To as_type(From v) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  To to;
  memcpy(&to, &v, sizeof(To));
  return to;
}
template <typename T> METAL_FUNC T clamp(T v, T low, T high) { return min(max(v, low), high); }
template <typename T> METAL_FUNC T select(T a, T b, bool second) { return second ? b : a; }
METAL_FUNC uint popcount(uint v) { return __popc(v); }

// What weights.h stands on: byte i of q below the other three bytes of `high`.
METAL_FUNC uint with_byte(uint high, uint q, uint i) {
  return __byte_perm(q, high, 0x7650u | i);
}

namespace precise {
METAL_FUNC float exp(float v) { return expf(v); }
METAL_FUNC float log(float v) { return logf(v); }
METAL_FUNC float sin(float v) { return sinf(v); }
METAL_FUNC float cos(float v) { return cosf(v); }
METAL_FUNC float tanh(float v) { return tanhf(v); }
METAL_FUNC float sqrt(float v) { return sqrtf(v); }
METAL_FUNC float rsqrt(float v) { return 1.0f / sqrtf(v); }
}

namespace fast {
METAL_FUNC float exp2(float v) {
  asm("ex2.approx.ftz.f32 %0, %0;" : "+f"(v));
  return v;
}
}

// What launch() calls for state: MLX hands every input in as const.
template <typename T> METAL_FUNC T* writable(const T* p) { return const_cast<T*>(p); }

// What tiles.h stands on: the parts of a tile that a lane holds, and the product
// of tiles, as PTX lays out mma.m16n8k16.
METAL_FUNC int tile_row(uint lane) { return int(lane >> 2); }
METAL_FUNC int tile_quarter(uint lane) { return int(lane & 3u); }
METAL_FUNC uint tile_far_lane() { return 2u; }

template <typename T> struct TileProduct {};
#define TILE_PRODUCT(T, name)                                                \
  template <> struct TileProduct<T> {                                        \
    static METAL_FUNC void add(                                              \
        uint a, uint b, uint c, uint d, uint e, uint f, float* s) {          \
      asm volatile(                                                          \
          "mma.sync.aligned.m16n8k16.row.col.f32." name "." name ".f32 "     \
          "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"  \
          : "+f"(s[0]), "+f"(s[1]), "+f"(s[2]), "+f"(s[3])                   \
          : "r"(a), "r"(b), "r"(c), "r"(d), "r"(e), "r"(f));                 \
    }                                                                        \
  };
TILE_PRODUCT(__half, "f16")
TILE_PRODUCT(__nv_bfloat16, "bf16")
#undef TILE_PRODUCT

template <typename T>
METAL_FUNC void multiply_tiles(uint4 top, uint4 bottom, uint4 columns, uint, float* sums) {
  TileProduct<T>::add(top.x, bottom.x, top.y, bottom.y, columns.x, columns.y, sums);
  TileProduct<T>::add(top.z, bottom.z, top.w, bottom.w, columns.z, columns.w, sums);
}
