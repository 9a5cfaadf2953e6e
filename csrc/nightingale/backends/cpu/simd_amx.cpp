// The loops behind `MatrixLoops`, in AMX instructions. As in simd_loops.inl,
// no standard headers.

#include "nightingale/backends/cpu/matrix_loops.h"
#include "nightingale/backends/cpu/vec_avx512.h"

namespace nightingale::cpu {

extern const MatrixLoops matrix_loops_amx;

} // namespace nightingale::cpu

namespace {

using namespace nightingale::cpu;

#include "nightingale/backends/cpu/matrix_loops.inl"

constexpr int64_t kLine = 64; // bytes in a row of one

// What a tile register holds is 16 rows of 64 bytes in all of them.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Not a local of begin(): GCC takes the instruction to read 8 bytes of it, and
// would leave the rest unwritten.
constexpr TileConfig kConfig;

void begin() {
  _tile_loadconfig(&kConfig);
}

void end() {
  _tile_release();
}

// Registers 0 to 3: the sums of two by two; 4 and 5: x; 6 and 7: w.
inline void clear_sums() {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
}

inline void
multiply_step(const uint16_t* x, int64_t row_bytes, const uint16_t* w) {
  _tile_loadd(4, x, row_bytes);
  _tile_loadd(6, w, kLine);
  _tile_loadd(7, w + kRegister, kLine);
  _tile_dpbf16ps(0, 4, 6);
  _tile_dpbf16ps(1, 4, 7);
  _tile_loadd(
      5, reinterpret_cast<const char*>(x) + kHalf * row_bytes, row_bytes);
  _tile_dpbf16ps(2, 5, 6);
  _tile_dpbf16ps(3, 5, 7);
}

inline void store_sums(float* y, int64_t stride) {
  int64_t row_bytes = stride * sizeof(float);
  _tile_stored(0, y, row_bytes);
  _tile_stored(1, y + kHalf, row_bytes);
  _tile_stored(2, y + kHalf * stride, row_bytes);
  _tile_stored(3, y + kHalf * stride + kHalf, row_bytes);
}

void tile(const MatrixTileArgs& a) {
  clear_sums();
  const uint16_t* w = a.w;
  for (int tap = 0; tap < a.taps; ++tap) {
    const uint16_t* x = a.x + tap * a.tap_step;
    for (int k = 0; k < a.depth; k += kTile) {
      multiply_step(x + k, a.row_step * sizeof(uint16_t), w);
      w += 2 * kRegister;
    }
  }
  store_sums(a.y, kTile);
}

// The queries stay in registers 4 to 7 where the head is 64 deep, as it is in
// every model we know.
void score_depth_64(const MatrixAttentionArgs& a, int64_t stride) {
  int64_t row_bytes = a.depth * sizeof(uint16_t);
  _tile_loadd(4, a.q, row_bytes);
  _tile_loadd(5, a.q + kTile, row_bytes);
  _tile_loadd(6, a.q + kHalf * a.depth, row_bytes);
  _tile_loadd(7, a.q + kHalf * a.depth + kTile, row_bytes);
  const uint16_t* keys = a.keys;
  for (int t = 0; t < a.count; t += kTile) {
    for (int half = 0; half < kTile; half += kHalf, keys += kRegister) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_loadd(2, keys, kLine);
      _tile_loadd(3, keys + 2 * kRegister, kLine);
      _tile_dpbf16ps(0, 4, 2);
      _tile_dpbf16ps(1, 6, 2);
      _tile_dpbf16ps(0, 5, 3);
      _tile_dpbf16ps(1, 7, 3);
      float* y = a.scores + t + half;
      _tile_stored(0, y, stride * sizeof(float));
      _tile_stored(1, y + kHalf * stride, stride * sizeof(float));
    }
    keys += 2 * kRegister;
  }
}

void score(const MatrixAttentionArgs& a, int64_t stride) {
  const uint16_t* keys = a.keys;
  for (int t = 0; t < a.count; t += kTile) {
    clear_sums();
    for (int k = 0; k < a.depth; k += kTile, keys += 2 * kRegister) {
      multiply_step(a.q + k, a.depth * sizeof(uint16_t), keys);
    }
    store_sums(a.scores + t, stride);
  }
}

void weigh_values(const MatrixAttentionArgs& a, int d, int64_t stride) {
  clear_sums();
  for (int t = 0; t < a.count; t += kTile) {
    multiply_step(
        a.weights + t,
        stride * sizeof(uint16_t),
        a.values + int64_t(t) * a.depth + d * kTile);
  }
  store_sums(a.y + d, a.depth);
}

void attend(const MatrixAttentionArgs& a) {
  attend_with(a, a.depth == 2 * kTile ? score_depth_64 : score, weigh_values);
}

} // namespace

const MatrixLoops nightingale::cpu::matrix_loops_amx{
    "amx",
    begin,
    end,
    tile,
    pack_panel,
    pack_values,
    attend};
