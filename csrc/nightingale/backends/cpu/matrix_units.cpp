#include "nightingale/backends/cpu/matrix_units.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "nightingale/backends/cpu/arm_features.h"
#include "nightingale/backends/cpu/threads.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace nightingale::cpu {

#if defined(__x86_64__)
extern const MatrixLoops matrix_loops_amx;
extern const MatrixLoops matrix_loops_bf16;
#elif defined(__aarch64__)
extern const MatrixLoops matrix_loops_neon_bf16;
#endif

namespace {

struct WideRows;
struct DecodedRows;
struct RoundedRows;
struct PackedKeys;
struct PackedValues;
struct Queries;
struct Scores;
struct Weights;
struct Result;

constexpr int64_t kPackedNumbers = 1 << 19;

#if defined(__x86_64__) && defined(__linux__)
// The system saves the tile registers of those alone who ask for it.
bool system_lends_tiles() {
  constexpr int request_permission = 0x1023, tile_data = 18;
  constexpr unsigned tile_state = 3u << 17; // of XCR0
  unsigned low, high;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & tile_state) == tile_state &&
      syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

std::vector<const MatrixLoops*> find_loops() {
  constexpr unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
  constexpr unsigned avx512_bf16 = 1u << 5;
  unsigned a, b, c, units;
  if (std::strncmp(simd().name, "avx512", 6) != 0 ||
      !__get_cpuid_count(7, 0, &a, &b, &c, &units) ||
      !__get_cpuid_count(7, 1, &a, &b, &c, &b) || !(a & avx512_bf16)) {
    return {};
  }
  if (units & amx_bf16 && units & amx_tile && system_lends_tiles()) {
    return {&matrix_loops_amx, &matrix_loops_bf16};
  }
  return {&matrix_loops_bf16};
}
#elif defined(__aarch64__)
std::vector<const MatrixLoops*> find_loops() {
  if (has_bf16_matrix_products()) {
    return {&matrix_loops_neon_bf16};
  }
  return {};
}
#else
std::vector<const MatrixLoops*> find_loops() {
  return {};
}
#endif

const MatrixLoops& loops() {
  return *matrix_loops().front();
}

// The same windows with channels up to the next whole tile, zeros in them.
Windows<uint16_t> widened(const Windows<uint16_t>& x) {
  int channels = matrix_depth(std::max(1, x.channels));
  if (channels == x.channels) {
    return x;
  }
  int rows = x.batch * x.length;
  auto* wide = scratch<WideRows, uint16_t>(int64_t(rows) * channels);
  for_rows(rows, [&](int64_t row) {
    uint16_t* to = wide + row * channels;
    std::memcpy(to, x.x + row * x.row_stride, x.channels * sizeof(uint16_t));
    std::fill(to + x.channels, to + channels, uint16_t(0));
  });
  Windows<uint16_t> result = x;
  result.x = wide;
  result.row_stride = result.channels = channels;
  return result;
}

// Keys and values of all heads of one batch row, as `attend` takes them.
struct PackedHeads {
  PackedHeads(int heads, int count, int depth)
      : count(count),
        depth(depth),
        head_size(int64_t(matrix_depth(count)) * depth),
        keys(scratch<PackedKeys, uint16_t>(heads * head_size)),
        values(scratch<PackedValues, uint16_t>(heads * head_size)) {}

  void pack_keys(const mx::array& k, int b, int head) const {
    for (int first = 0; first < count; first += kMatrixTile) {
      loops().pack_panel(
          row_of<uint16_t>(k, b, first) + head * depth,
          k.strides(1),
          std::min(kMatrixTile, count - first),
          1,
          depth,
          keys + head * head_size + int64_t(first) * depth);
    }
  }

  void pack_values(const mx::array& v, int b, int head) const {
    loops().pack_values(
        row_of<uint16_t>(v, b, 0) + head * depth,
        v.strides(1),
        count,
        depth,
        values + head * head_size);
  }

  int count;
  int depth;
  int64_t head_size;
  uint16_t* keys;
  uint16_t* values;
};

// One head of the queries from `first` on. out: [B, T, heads * depth]
void attend_strip(
    const mx::array& q,
    const PackedHeads& packed,
    int b,
    int head,
    int first,
    mx::array& out) {
  int depth = packed.depth, padded = matrix_depth(packed.count);
  int room = loops().queries, count = std::min(room, q.shape(1) - first);
  auto* queries = scratch<Queries, uint16_t>(room * depth);
  std::fill(queries, queries + room * depth, uint16_t(0));
  for (int r = 0; r < count; ++r) {
    const uint16_t* from = row_of<uint16_t>(q, b, first + r) + head * depth;
    std::memcpy(queries + r * depth, from, depth * sizeof(uint16_t));
  }
  MatrixAttentionArgs a;
  a.q = queries;
  a.depth = depth;
  a.count = packed.count;
  a.keys = packed.keys + head * packed.head_size;
  a.values = packed.values + head * packed.head_size;
  a.scale = 1.0f / std::sqrt(static_cast<float>(depth));
  a.scores = scratch<Scores>(int64_t(kMatrixTile) * padded);
  a.weights = scratch<Weights, uint16_t>(int64_t(kMatrixTile) * padded);
  a.y = scratch<Result>(room * depth);
  loops().begin();
  loops().attend(a);
  loops().end();
  int64_t row_size = out.shape(2);
  for (int r = 0; r < count; ++r) {
    int64_t row = int64_t(b) * out.shape(1) + first + r;
    simd().pack[static_cast<int>(Storage::bf16)](
        a.y + r * depth,
        depth,
        out.data<uint16_t>() + row * row_size + head * depth);
  }
}

PanelLoops<uint16_t> panel_loops() {
  static_assert(kMatrixTile * kMatrixTile <= kMostTileSums);
  return {
      kMatrixTile,
      kMatrixTile,
      kPackedNumbers,
      loops().tile,
      loops().tile,
      loops().begin,
      loops().end};
}

// pack(column, count, panel) packs the panel of some columns.
template <typename F>
void panel_product(
    const Windows<uint16_t>& narrow,
    F pack,
    int columns,
    const EpilogueWriter& epilogue) {
  spread_rows(widened(narrow), panel_loops(), columns, pack, epilogue);
}

// Packs `count` rows of weights, each of taps * channels.
void pack_rows(
    const uint16_t* rows,
    int count,
    int taps,
    int channels,
    uint16_t* panel) {
  loops().pack_panel(rows, taps * channels, count, taps, channels, panel);
}

// Packs `count` rows of quantized weights from `column` on, the first of a
// tile.
void pack_rows(
    const PackedQuantized& w,
    int column,
    int count,
    int taps,
    uint16_t* panel) {
  if (auto unpack = loops().unpack_panel) {
    unpack(w.tile(column / kQuantizedTile), w.groups, w.bits, panel);
    return;
  }
  float* floats = scratch<DecodedRows>(count * w.depth());
  auto* rounded = scratch<RoundedRows, uint16_t>(count * w.depth());
  decode_rows(w, column, count, floats);
  simd().pack[static_cast<int>(Storage::bf16)](
      floats, count * w.depth(), rounded);
  pack_rows(rounded, count, taps, static_cast<int>(w.depth()) / taps, panel);
}

} // namespace

const std::vector<const MatrixLoops*>& matrix_loops() {
  static const auto* found = new std::vector<const MatrixLoops*>(find_loops());
  return *found;
}

bool has_bf16_matrix_units() {
  return !matrix_loops().empty();
}

const char* bf16_name() {
  return has_bf16_matrix_units() ? loops().name : "";
}

bool has_bf16_tiles() {
#if defined(__x86_64__)
  return has_bf16_matrix_units() && &loops() == &matrix_loops_amx;
#else
  return false;
#endif
}

void matrix_product(
    const Windows<uint16_t>& x,
    const uint16_t* w,
    int columns,
    const EpilogueWriter& epilogue) {
  auto pack = [&](int column, int count, uint16_t* panel) {
    const uint16_t* rows = w + int64_t(column) * x.depth();
    pack_rows(rows, count, x.taps, x.channels, panel);
  };
  panel_product(x, pack, columns, epilogue);
}

void matrix_product(
    const Windows<uint16_t>& x,
    const PackedQuantized& w,
    const EpilogueWriter& epilogue) {
  auto pack = [&](int column, int count, uint16_t* panel) {
    pack_rows(w, column, count, x.taps, panel);
  };
  panel_product(x, pack, w.columns, epilogue);
}

bool can_pack_panels(const ops::Matrix& w) {
  if (!has_bf16_matrix_units() || w.columns() % kMatrixTile != 0) {
    return false;
  }
  return w.is_quantized() ? has_bf16_tiles() || w.row_bits == 16
                          : w.w.dtype() == mx::bfloat16;
}

PanelWeights::PanelWeights(const mx::array& w, int columns, int depth, int bits)
    : rows(bits ? nullptr : w.data<uint16_t>()),
      columns(columns),
      depth(depth) {
  if (bits) {
    quantized.emplace(w, columns, bits);
  }
}

int64_t PanelWeights::packed_numbers() const {
  return int64_t(ceil_div(columns, kMatrixTile)) * kMatrixTile * depth;
}

void PanelWeights::pack(uint16_t* packed) const {
  for_parts(columns, kMatrixTile, [&](int64_t column, int count) {
    uint16_t* panel = packed + column * depth;
    if (quantized) {
      pack_rows(*quantized, column, count, 1, panel);
    } else {
      pack_rows(rows + column * depth, count, 1, depth, panel);
    }
  });
}

void multiply_panels(
    const uint16_t* x,
    int64_t row_stride,
    int rows,
    const PanelWeights& w,
    const uint16_t* packed,
    const EpilogueWriter& epilogue) {
  auto windows = row_windows(x, rows, w.depth);
  windows.row_stride = row_stride;
  auto panels = panel_loops();
  for (int i = 0; i < row_tiles(windows, panels.rows); i += kTilesPerBlock) {
    run_block(windows, panels, i, packed, 0, w.columns, epilogue);
  }
}

bool can_use_matrix_attention(int head_dim) {
  return has_bf16_matrix_units() && head_dim % kMatrixTile == 0;
}

void matrix_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::array& out) {
  int queries = loops().queries, strips = ceil_div(q.shape(1), queries);
  PackedHeads packed(heads, k.shape(1), q.shape(2) / heads);
  for (int b = 0; b < q.shape(0); ++b) {
    parallel_for(2 * heads, [&](int i) {
      if (i % 2 == 0) {
        packed.pack_keys(k, b, i / 2);
      } else {
        packed.pack_values(v, b, i / 2);
      }
    });
    parallel_for(heads * strips, [&](int i) {
      attend_strip(q, packed, b, i / strips, i % strips * queries, out);
    });
  }
}

} // namespace nightingale::cpu
