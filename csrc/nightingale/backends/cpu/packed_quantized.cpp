#include "nightingale/backends/cpu/packed_quantized.h"

#include <algorithm>

namespace nightingale::cpu {

namespace {

// One row's part of a group. codes: of its first four columns
void decode_group(
    const uint8_t* quantized,
    int bits,
    float scale,
    float bias,
    float* out) {
  auto decode = [&](int level) {
    return scale * static_cast<float>(level) + bias;
  };
  int columns = kQuantizedGroup * bits / 8; // a byte for each
  for (int k = 0; k < columns; k += 4, quantized += 4 * kQuantizedTile) {
    for (int i = 0; i < 4; ++i) {
      int column = k + kQuantizedOrder[i];
      if (bits == 8) {
        out[column] = decode(quantized[i]);
      } else {
        out[column] = decode(quantized[i] & 0xf);
        out[column + columns] = decode(quantized[i] >> 4);
      }
    }
  }
}

} // namespace

void decode_rows(const PackedQuantized& w, int first, int count, float* rows) {
  auto unpack = simd().unpack[static_cast<int>(Storage::f16)];
  int tile = first / kQuantizedTile, row = first % kQuantizedTile;
  for (int done = 0; done < count; ++tile, row = 0) {
    int some = std::min(kQuantizedTile - row, count - done);
    const uint8_t* group = w.tile(tile);
    for (int g = 0; g < w.groups; ++g, group += quantized_group_bytes(w.bits)) {
      float scales[2 * kQuantizedTile]; // and biases
      unpack(group + quantized_bytes(w.bits), 2 * kQuantizedTile, scales);
      for (int i = row; i < row + some; ++i) {
        decode_group(
            group + 4 * i,
            w.bits,
            scales[i],
            scales[kQuantizedTile + i],
            rows + (done + i - row) * w.depth() + g * kQuantizedGroup);
      }
    }
    done += some;
  }
}

} // namespace nightingale::cpu
