// Tiles of quantized weights by rows of bytes, for processors that multiply and
// add bytes four at a time. The file that includes this one has
// quantized_loops.inl and defines
//
//   ByteSums<digits, bits, R, P>: the sums of a group, of R rows by P vectors
//   of
//     rows of the matrix; `digits` bytes make an integer of a row.
//     static of(group, x, stride), floats(row, part, total of its integers)
//   kMostByteRows<digits>: the largest R
//   kByteParts<digits, R>: the P beside it

// P vectors of a tile's rows, from `first` on, by R rows.
template <int digits, int bits, int R, int P>
inline void
byte_block(const QuantizedTileArgs& a, int tile, int row, int first) {
  const QuantizedRows x = a.x.from_row(row);
  constexpr int group_bytes = digits * kQuantizedGroup; // of a row
  int64_t stride = x.row_step * group_bytes;
  Vec y[R][P] = {};
  const uint8_t* group = a.tiles[tile];
  for (int tap = 0; tap < x.taps; ++tap) {
    int64_t at = tap * x.tap_step;
    for (int g = 0; g < x.groups;
         ++g, ++at, group += quantized_group_bytes(bits)) {
      auto sums = ByteSums<digits, bits, R, P>::of(
          group + 4 * first, x.bytes + at * group_bytes, stride);
      const f16* scales =
          reinterpret_cast<const f16*>(group + quantized_bytes(bits)) + first;
      __builtin_prefetch(
          reinterpret_cast<const uint8_t*>(scales) +
          kQuantizedPrefetchBytes<bits>);
      UNROLL for (int p = 0; p < P; ++p) {
        Vec scale = Vec::load(scales + p * Vec::width);
        Vec bias = Vec::load(scales + kQuantizedTile + p * Vec::width);
        UNROLL for (int r = 0; r < R; ++r) {
          int64_t place = r * x.row_step + at;
          Vec by_row = Vec::set1(x.scales[place]);
          Vec offset = Vec::set1(x.sums[place]);
          Vec sum = sums.floats(r, p, x.totals + place);
          y[r][p] = fma_once(scale, sum * by_row, y[r][p]);
          y[r][p] = fma_once(bias, offset, y[r][p]);
        }
      }
    }
  }
  UNROLL for (int r = 0; r < R; ++r) {
    UNROLL for (int p = 0; p < P; ++p) {
      float* to = a.y[tile] + (row + r) * a.y_stride + first;
      y[r][p].store(to + p * Vec::width);
    }
  }
}

template <int digits, int bits, int R>
inline void byte_blocks(const QuantizedTileArgs& a, int row, int count) {
  if (count == R) {
    constexpr int parts = kByteParts<digits, R>;
    for (int tile = 0; tile < 2 && a.tiles[tile]; ++tile) {
      for (int first = 0; first < kQuantizedTile; first += Vec::width * parts) {
        byte_block<digits, bits, R, parts>(a, tile, row, first);
      }
    }
  } else if constexpr (R > 1) {
    byte_blocks<digits, bits, R - 1>(a, row, count);
  }
}

// Rows in blocks of about the same size.
template <int digits, int bits>
void byte_tile(const QuantizedTileArgs& a) {
  constexpr int most = kMostByteRows<digits>;
  int blocks = (a.x.rows + most - 1) / most;
  for (int i = 0, row = 0; i < blocks; ++i) {
    int left = blocks - i;
    int count = (a.x.rows - row + left - 1) / left;
    byte_blocks<digits, bits, most>(a, row, count);
    row += count;
  }
}
