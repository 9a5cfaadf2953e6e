#include "nightingale/ops/cpu/code_linear.h"

#include <algorithm>

#include "nightingale/ops/cpu/finish.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/row_tiles.h"
#include "nightingale/ops/cpu/scratch.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct RowIntegers;
struct RowScales;
struct NormedRow;
struct TileSums;
struct Gated;

// Integers of rows that are used together: half of a core's second-level cache.
constexpr int64_t kCachedIntegers = 1 << 19;

// Tiles of a matrix that a thread takes at once.
constexpr int kTilesPerPiece = 2;
constexpr int kPieceColumns = kTilesPerPiece * kCodeTile;

// What a matrix in codes is while an op runs.
struct PackedCodes {
  const uint8_t* tiles;
  int columns; // of the result
  int groups;
  int bits;

  PackedCodes(const mx::array& packed, int columns, int bits)
      : tiles(packed.data<uint8_t>()),
        columns(columns),
        groups(packed.shape(1)),
        bits(bits) {}

  const uint8_t* tile(int index) const {
    return tiles + int64_t(index) * groups * code_group_bytes(bits);
  }
};

// Some rows as integers, in memory of the calling thread. row(r) gives the
// floats of row r.
template <typename F>
CodeRows to_integers(int rows, int groups, F row) {
  int64_t depth = int64_t(groups) * kCodeGroup;
  auto* integers = scratch<RowIntegers, int16_t>(rows * depth);
  float* scales = scratch<RowScales>(2 * int64_t(rows) * groups);
  float* sums = scales + int64_t(rows) * groups;
  for_rows(rows, [&](int64_t r) {
    simd().codes.to_integers(
        row(r),
        groups,
        integers + r * depth,
        scales + r * groups,
        sums + r * groups);
  });
  return {integers, scales, sums, rows, groups};
}

// Tiles [first, first + count) by all rows. sums: [rows, stride]
void multiply_tiles(
    const CodeRows& x,
    const PackedCodes& w,
    int first,
    int count,
    float* sums,
    int64_t stride) {
  for (int i = 0; i < count; ++i) {
    CodeTileArgs a;
    a.x = x;
    a.tile = w.tile(first + i);
    a.y = sums + i * kCodeTile;
    a.y_stride = stride;
    simd().codes.tile[code_width(w.bits)](a);
  }
}

// Calls run(integers, first) for blocks of the rows, `first` being the row that
// a block begins with.
template <typename F, typename Run>
void for_row_blocks(int rows, int groups, F row, Run run) {
  int64_t depth = int64_t(groups) * kCodeGroup;
  int most = static_cast<int>(std::max<int64_t>(8, kCachedIntegers / depth));
  for (int first = 0; first < rows; first += most) {
    int count = std::min(most, rows - first);
    run(to_integers(count, groups, [&](int r) { return row(first + r); }),
        first);
  }
}

void multiply(
    const CodeRows& x,
    int first_row,
    const PackedCodes& w,
    const Finish& finish) {
  parallel_for(pieces(w.columns, kPieceColumns), [&](int piece) {
    int column = piece * kPieceColumns;
    int columns = std::min(kPieceColumns, w.columns - column);
    float* sums = scratch<TileSums>(int64_t(x.rows) * kPieceColumns);
    multiply_tiles(
        x,
        w,
        piece * kTilesPerPiece,
        pieces(columns, kCodeTile),
        sums,
        kPieceColumns);
    finish(sums, kPieceColumns, first_row, x.rows, column, columns);
  });
}

// silu(gate) * up: a tile of the gate meets its tile of up while they are near.
// Both halves are whole tiles. y: [rows, w.columns / 2]
void multiply_swiglu(const CodeRows& x, const PackedCodes& w, float* y) {
  int features = w.columns / 2;
  parallel_for(features / kCodeTile, [&](int tile) {
    int64_t size = int64_t(x.rows) * kCodeTile;
    float* gate = scratch<Gated>(2 * size);
    float* up = gate + size;
    multiply_tiles(x, w, tile, 1, gate, kCodeTile);
    multiply_tiles(x, w, features / kCodeTile + tile, 1, up, kCodeTile);
    for (int r = 0; r < x.rows; ++r) {
      simd().silu_mul(
          gate + r * kCodeTile,
          up + r * kCodeTile,
          kCodeTile,
          y + int64_t(r) * features + tile * kCodeTile);
    }
  });
}

// The rows of x, normalised one at a time.
struct NormedRows {
  const mx::array& x;
  const mx::array& norm;
  float eps;

  const float* operator()(int64_t row) const {
    int64_t channels = x.shape(-1);
    float* normed = scratch<NormedRow>(channels);
    simd().rms_norm(
        x.data<float>() + row * channels,
        norm.data<float>(),
        channels,
        eps,
        normed);
    return normed;
  }
};

mx::Shape with_columns(const mx::array& x, int columns) {
  mx::Shape shape = x.shape();
  shape.back() = columns;
  return shape;
}

} // namespace

mx::array code_linear(
    const mx::array& x,
    const ops::Matrix& w,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  mx::Shape shape = with_columns(x, w.rows());
  storage_of(x); // an Error here, not on the stream's thread
  Arrays inputs{dense(x, s), w.w};
  FinishInputs finish(epilogue, shape, inputs, s);
  return make_op(
      "CodeLinear",
      {shape, epilogue.result_dtype(x)},
      std::move(inputs),
      [=, columns = w.rows(), bits = w.bits](const Arrays& in, Arrays& out) {
        PackedCodes codes(in[1], columns, bits);
        Finish f = finish.on(in, out[0]);
        const float* floats = floats_of(in[0]);
        int64_t depth = in[0].shape(-1);
        for_row_blocks(
            row_count(in[0]),
            codes.groups,
            [&](int64_t row) { return floats + row * depth; },
            [&](const CodeRows& rows, int first) {
              multiply(rows, first, codes, f);
            });
      },
      s);
}

mx::array norm_code_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& w,
    mx::Stream s) {
  return make_op(
      "NormCodeLinear",
      {with_columns(x, w.rows())},
      {as_float(x, s), as_float(norm, s), w.w},
      [=, columns = w.rows(), bits = w.bits](const Arrays& in, Arrays& out) {
        PackedCodes codes(in[2], columns, bits);
        Finish f;
        f.y = out[0].data<void>();
        f.stride = columns;
        for_row_blocks(
            row_count(in[0]),
            codes.groups,
            NormedRows{in[0], in[1], eps},
            [&](const CodeRows& rows, int first) {
              multiply(rows, first, codes, f);
            });
      },
      s);
}

mx::array norm_code_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const ops::Matrix& gate_up,
    mx::Stream s) {
  int features = gate_up.rows() / 2;
  if (features % kCodeTile != 0) {
    return swiglu(norm_code_linear(x, norm, eps, gate_up, s), s);
  }
  return make_op(
      "NormCodeSwiglu",
      {with_columns(x, features)},
      {as_float(x, s), as_float(norm, s), gate_up.w},
      [=, bits = gate_up.bits](const Arrays& in, Arrays& out) {
        PackedCodes codes(in[2], 2 * features, bits);
        for_row_blocks(
            row_count(in[0]),
            codes.groups,
            NormedRows{in[0], in[1], eps},
            [&](const CodeRows& rows, int first) {
              float* y = out[0].data<float>() + int64_t(first) * features;
              multiply_swiglu(rows, codes, y);
            });
      },
      s);
}

} // namespace nightingale::cpu
