#include "nightingale/backends/cpu/packed_codes.h"

#include <algorithm>

namespace nightingale::cpu {

namespace {

// One row's part of a group. codes: of its first four columns
void decode_group(
    const uint8_t* codes,
    int bits,
    float scale,
    float bias,
    float* out) {
  auto decode = [&](int code) {
    return scale * static_cast<float>(code) + bias;
  };
  int columns = kCodeGroup * bits / 8; // a byte for each
  for (int k = 0; k < columns; k += 4, codes += 4 * kCodeTile) {
    for (int i = 0; i < 4; ++i) {
      int column = k + kCodeOrder[i];
      if (bits == 8) {
        out[column] = decode(codes[i]);
      } else {
        out[column] = decode(codes[i] & 0xf);
        out[column + columns] = decode(codes[i] >> 4);
      }
    }
  }
}

} // namespace

void decode_rows(const PackedCodes& w, int first, int count, float* rows) {
  auto unpack = simd().unpack[static_cast<int>(Storage::f16)];
  int tile = first / kCodeTile, row = first % kCodeTile;
  for (int done = 0; done < count; ++tile, row = 0) {
    int some = std::min(kCodeTile - row, count - done);
    const uint8_t* group = w.tile(tile);
    for (int g = 0; g < w.groups; ++g, group += code_group_bytes(w.bits)) {
      float scales[2 * kCodeTile]; // and biases
      unpack(group + code_bytes(w.bits), 2 * kCodeTile, scales);
      for (int i = row; i < row + some; ++i) {
        decode_group(
            group + 4 * i,
            w.bits,
            scales[i],
            scales[kCodeTile + i],
            rows + (done + i - row) * w.depth() + g * kCodeGroup);
      }
    }
    done += some;
  }
}

} // namespace nightingale::cpu
