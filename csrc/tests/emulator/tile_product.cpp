#include "emulator/tile_product.h"

namespace nightingale::emulator {

namespace {

constexpr int kRows = 16, kColumns = 8, kDepth = 16;

// The manual numbers a lane's elements a0 to a7, b0 to b3 and c0 to c3 and says
// where each of them stands.
int a_row(int group, int i) {
  return i < 2 || (i >= 4 && i < 6) ? group : group + 8;
}
int a_column(int in_group, int i) {
  return in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
}
int b_row(int in_group, int i) {
  return in_group * 2 + (i & 1) + (i < 2 ? 0 : 8);
}
int c_row(int group, int i) {
  return i < 2 ? group : group + 8;
}
int c_column(int in_group, int i) {
  return in_group * 2 + (i & 1);
}

} // namespace

void multiply_tiles(const std::array<const TileRegisters*, 32>& lanes) {
  for (int step = 0; step < 2; ++step) {
    float a[kRows][kDepth], b[kColumns][kDepth];
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane >> 2, in_group = lane % 4;
      for (int i = 0; i < 8; ++i) {
        a[a_row(group, i)][a_column(in_group, i)] =
            lanes[lane]->a[step][i / 2][i % 2];
      }
      for (int i = 0; i < 4; ++i) {
        b[group][b_row(in_group, i)] = lanes[lane]->b[step][i / 2][i % 2];
      }
    }
    for (int lane = 0; lane < 32; ++lane) {
      int group = lane >> 2, in_group = lane % 4;
      for (int i = 0; i < 4; ++i) {
        const float* row = a[c_row(group, i)];
        const float* column = b[c_column(in_group, i)];
        float sum = lanes[lane]->sums[i];
        for (int k = 0; k < kDepth; ++k) {
          sum += row[k] * column[k];
        }
        lanes[lane]->sums[i] = sum;
      }
    }
  }
}

} // namespace nightingale::emulator
