#pragma once

#include "nightingale/backends/cpu/quantized_loops.h"
#include "nightingale/backends/cpu/simd.h"

// The inner loops for processors that multiply bfloat16 numbers: in tiles with
// Intel's AMX, or in vectors with AVX-512's or ARM's BF16. They run between
// begin() and end(), on one thread.

namespace nightingale::cpu {

// Rows and columns of a tile, and the depth that is multiplied at a time.
constexpr int kMatrixTile = 32;

// A tile of quantized weights has the columns of a panel.
static_assert(kQuantizedTile == kMatrixTile);

constexpr int matrix_depth(int depth) {
  return (depth + kMatrixTile - 1) / kMatrixTile * kMatrixTile;
}

// depth is a multiple of kMatrixTile, w a panel by pack_panel, y [kMatrixTile,
// kMatrixTile].
using MatrixTileArgs = TileArgsOf<uint16_t>;

// A strip of `MatrixLoops::queries` of one head over all of its keys.
struct MatrixAttentionArgs {
  const uint16_t* q; // [queries, depth]
  int depth; // a multiple of kMatrixTile
  int count; // keys
  const uint16_t* keys; // by pack_panel, kMatrixTile keys to a panel
  const uint16_t* values; // by pack_values
  float scale;
  float* scores; // [kMatrixTile, matrix_depth(count)], to work in
  uint16_t* weights; // likewise
  float* y; // [queries, depth]
};

struct MatrixLoops {
  const char* name;

  void (*begin)();
  void (*end)();

  void (*tile)(const MatrixTileArgs& args);

  // w: `columns` rows, each of `taps` times `depth`; what a panel has more in
  // depth or columns is 0. Room: taps * matrix_depth(depth) * kMatrixTile
  void (*pack_panel)(
      const uint16_t* w,
      int64_t w_stride,
      int columns,
      int taps,
      int depth,
      uint16_t* panel);

  // The same of a tile of quantized weights (quantized_loops.h), dequantized.
  // Null where weights are dequantized first.
  void (*unpack_panel)(
      const uint8_t* tile,
      int groups,
      int bits,
      uint16_t* panel);

  // v: `count` rows of `depth`. Room: matrix_depth(count) * depth
  void (*pack_values)(
      const uint16_t* v,
      int64_t v_stride,
      int count,
      int depth,
      uint16_t* packed);

  int queries; // that `attend` takes
  void (*attend)(const MatrixAttentionArgs& args);
};

} // namespace nightingale::cpu
