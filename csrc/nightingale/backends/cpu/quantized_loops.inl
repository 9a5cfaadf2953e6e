// The loops behind `QuantizedLoops`, over the vectors of the file that includes
// this one; it is part of simd_loops.inl, and as free of standard headers.

using nightingale::cpu::kQuantizedGroup;
using nightingale::cpu::kQuantizedTile;
using nightingale::cpu::quantized_bytes;
using nightingale::cpu::quantized_group_bytes;
using nightingale::cpu::quantized_limit;
using nightingale::cpu::QuantizedLoops;
using nightingale::cpu::QuantizedRows;
using nightingale::cpu::QuantizedTileArgs;

// The processor does not foresee the next page by itself.
template <int bits>
constexpr int kQuantizedPrefetchBytes = bits == 8 ? 3072 : 2048;

// Vectors that are summed at a time.
constexpr int kQuantizedParts = Vec::quantized_parts;
constexpr int kQuantizedStep = kQuantizedParts * Vec::width;
static_assert(kQuantizedTile % kQuantizedStep == 0);

void to_integers(
    const float* x,
    int groups,
    int bits,
    int16_t* integers,
    float* scales,
    float* sums) {
  const float limit = quantized_limit(bits);
  for (int g = 0; g < groups;
       ++g, x += kQuantizedGroup, integers += kQuantizedGroup) {
    Vec most = Vec::zero(), wrong = Vec::zero();
    for (int k = 0; k < kQuantizedGroup; k += Vec::width) {
      Vec value = Vec::load(x + k);
      most = max(most, abs(value));
      wrong = wrong + value * Vec::zero(); // NaN where the value is not finite
    }
    float top = most.max_lane(), poison = wrong.sum();
    float factor = top > 1e-30f ? limit / top : 0.0f;
    // Adding this leaves the nearest integer in the lowest bits.
    constexpr float rounder = 0x1.8p23f;
    float rounded[kQuantizedGroup];
    for (int k = 0; k < kQuantizedGroup; ++k) {
      rounded[k] = x[k] * factor + rounder;
    }
    int total = 0;
    for (int k = 0; k < kQuantizedGroup; ++k) {
      integers[k] = static_cast<int16_t>(to_bits(rounded[k]));
      total += integers[k];
    }
    scales[g] = (factor > 0.0f ? top / limit : 0.0f) + poison;
    sums[g] = scales[g] * static_cast<float>(total);
  }
}

// Sums of R rows by kQuantizedParts vectors. Where they are few, even and odd
// pairs of columns have sums of their own: one alone would wait for itself.
template <int R>
struct QuantizedSums {
  static constexpr int chains = R <= Vec::quantized_split_rows ? 2 : 1;
  PairSums sums[chains][R][kQuantizedParts];

  // integers: of the first row, at the first of the four columns whose bytes
  // are `shift` bits up.
  template <int shift, int mask>
  void add_columns(
      const Pairs (&quantized)[kQuantizedParts],
      const int16_t* integers,
      int64_t stride) {
    for (int r = 0; r < R; ++r) {
      Pairs first = Pairs::set1(integers + r * stride);
      Pairs second = Pairs::set1(integers + r * stride + 2);
      for (int p = 0; p < kQuantizedParts; ++p) {
        auto low = quantized[p].template bits<shift, mask>();
        auto high = quantized[p].template bits<shift + 8, mask>();
        sums[0][r][p].add_products(low, first);
        sums[chains - 1][r][p].add_products(high, second);
      }
    }
  }

  Vec floats(int r, int p) const {
    PairSums sum = sums[0][r][p];
    if constexpr (chains == 2) {
      sum.add(sums[1][r][p]);
    }
    return sum.floats();
  }
};

template <int bits, int R>
inline void add_group(
    const uint8_t* quantized,
    const int16_t* integers,
    int64_t stride,
    QuantizedSums<R>& sums) {
  constexpr int block_bytes = 4 * kQuantizedTile;
  for (int block = 0; block < quantized_bytes(bits) / block_bytes; ++block) {
    const uint8_t* from = quantized + block * block_bytes;
    Pairs loaded[kQuantizedParts];
    for (int p = 0; p < kQuantizedParts; ++p) {
      loaded[p] = Pairs::load(from + p * 4 * Vec::width);
    }
    for (int line = 0; line < 4 * kQuantizedStep; line += 64) {
      __builtin_prefetch(from + line + kQuantizedPrefetchBytes<bits>);
    }
    const int16_t* at = integers + 4 * block;
    if constexpr (bits == 8) {
      sums.template add_columns<0, 0xff>(loaded, at, stride);
    } else {
      sums.template add_columns<0, 0xf>(loaded, at, stride);
      sums.template add_columns<4, 0xf>(
          loaded, at + kQuantizedGroup / 2, stride);
    }
  }
}

// kQuantizedStep rows of T tiles, from `first` on, by R rows.
template <int bits, int R, int T>
inline void
code_block(const QuantizedTileArgs& a, int tile, int row, int first) {
  const QuantizedRows x = a.x.from_row(row);
  int64_t stride = x.row_step * kQuantizedGroup;
  Vec y[T][R][kQuantizedParts] = {};
  int64_t tile_at = 0; // bytes
  for (int tap = 0; tap < x.taps; ++tap) {
    int64_t at = tap * x.tap_step;
    for (int g = 0; g < x.groups;
         ++g, ++at, tile_at += quantized_group_bytes(bits)) {
      for (int t = 0; t < T; ++t) {
        const uint8_t* group = a.tiles[tile + t] + tile_at;
        QuantizedSums<R> sums;
        add_group<bits>(
            group + 4 * first, x.integers + at * kQuantizedGroup, stride, sums);
        const uint8_t* behind = group + quantized_bytes(bits);
        __builtin_prefetch(behind + kQuantizedPrefetchBytes<bits>);
        __builtin_prefetch(behind + 64 + kQuantizedPrefetchBytes<bits>);
        const f16* scales = reinterpret_cast<const f16*>(behind) + first;
        for (int p = 0; p < kQuantizedParts; ++p) {
          Vec scale = Vec::load(scales + p * Vec::width);
          Vec bias = Vec::load(scales + kQuantizedTile + p * Vec::width);
          for (int r = 0; r < R; ++r) {
            Vec by_row = Vec::set1(x.scales[r * x.row_step + at]);
            Vec offset = Vec::set1(x.sums[r * x.row_step + at]);
            Vec& sum = y[t][r][p];
            sum = fma_once(scale, sums.floats(r, p) * by_row, sum);
            sum = fma_once(bias, offset, sum);
          }
        }
      }
    }
  }
  for (int t = 0; t < T; ++t) {
    for (int r = 0; r < R; ++r) {
      for (int p = 0; p < kQuantizedParts; ++p) {
        float* to = a.y[tile + t] + (row + r) * a.y_stride + first;
        y[t][r][p].store(to + p * Vec::width);
      }
    }
  }
}

template <int bits, int R, int T>
inline void code_steps(const QuantizedTileArgs& a, int tile, int row) {
  for (int first = 0; first < kQuantizedTile; first += kQuantizedStep) {
    code_block<bits, R, T>(a, tile, row, first);
  }
}

template <int bits, int R>
inline void code_blocks(const QuantizedTileArgs& a, int row, int count) {
  if (count == R) {
    if constexpr (R <= Vec::quantized_pair_rows) {
      if (a.tiles[1]) {
        code_steps<bits, R, 2>(a, 0, row);
        return;
      }
    }
    for (int tile = 0; tile < 2 && a.tiles[tile]; ++tile) {
      code_steps<bits, R, 1>(a, tile, row);
    }
  } else if constexpr (R > 1) {
    code_blocks<bits, R - 1>(a, row, count);
  }
}

// Rows in blocks of about the same size, each of which reads the tiles once.
template <int bits>
void quantized_tile(const QuantizedTileArgs& a) {
  constexpr int most = Vec::quantized_rows;
  int blocks = (a.x.rows + most - 1) / most;
  for (int i = 0, row = 0; i < blocks; ++i) {
    int left = blocks - i;
    int count = (a.x.rows - row + left - 1) / left;
    code_blocks<bits, most>(a, row, count);
    row += count;
  }
}

#include "nightingale/backends/cpu/quantize_loops.inl"

constexpr QuantizedLoops quantized_loops() {
  return {
      encode,
      to_integers,
      {},
      {{quantized_tile<8>, quantized_tile<4>},
       {quantized_tile<8>, quantized_tile<4>}}};
}
