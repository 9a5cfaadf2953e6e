#include "emulator/tile_product.h"

#include "emulator/tiny_kernel.h"

using namespace nightingale;
using namespace nightingale::testing;
using emulator::TileRegisters;

namespace {

// One number in a lane's registers, all others zero.
struct Element {
  int lane, index; // as the PTX manual numbers them
};

// Where 3 * 2 ends up: the only sums that are not zero.
std::vector<std::pair<int, int>> places_of(int step, Element a, Element b) {
  std::array<TileRegisters, 32> registers{};
  std::array<std::array<float, 4>, 32> sums{};
  std::array<const TileRegisters*, 32> lanes;
  for (int i = 0; i < 32; ++i) {
    registers[i].sums = sums[i].data();
    lanes[i] = &registers[i];
  }
  registers[a.lane].a[step][a.index / 2][a.index % 2] = 3.0f;
  registers[b.lane].b[step][b.index / 2][b.index % 2] = 2.0f;
  emulator::multiply_tiles(lanes);
  std::vector<std::pair<int, int>> places;
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 4; ++i) {
      if (sums[lane][i] != 0.0f) {
        CHECK(sums[lane][i] == 6.0f);
        places.emplace_back(lane, i);
      }
    }
  }
  return places;
}

using Places = std::vector<std::pair<int, int>>;

} // namespace

TEST_CASE("emulator: tiles lie in registers as mma.m16n8k16 has them") {
  for (int step : {0, 1}) {
    // a0 of lane 0: row 0, column 0; b0 of lane 0: row 0, column 0.
    CHECK(places_of(step, {0, 0}, {0, 0}) == Places{{0, 0}});
    // a1 of lane 5: row 1, column 3; b1 of lane 29: row 3, column 7.
    CHECK(places_of(step, {5, 1}, {29, 1}) == Places{{7, 1}});
    // a2 of lane 6: row 9, column 4; b0 of lane 2: row 4, column 0.
    CHECK(places_of(step, {6, 2}, {2, 0}) == Places{{4, 2}});
    // a4 of lane 5: row 1, column 10; b2 of lane 13: row 10, column 3.
    CHECK(places_of(step, {5, 4}, {13, 2}) == Places{{5, 1}});
    // a7 of lane 31: row 15, column 15; b3 of lane 31: row 15, column 7.
    CHECK(places_of(step, {31, 7}, {31, 3}) == Places{{31, 3}});
    // Columns and rows that are not each other's.
    CHECK(places_of(step, {5, 4}, {13, 0}).empty());
  }
}

TEST_CASE("emulator: multiply_tiles is a product of a SIMD group") {
  auto s = mx::Device::cpu;
  auto x = mx::astype(
      mx::random::normal({24, 32}, mx::random::key(1), s), mx::float16, s);
  auto y = run(
      {.body = "uint lane = thread_index_in_simdgroup;\n"
               "int row = tile_row(lane), quarter = tile_quarter(lane);\n"
               "const device uint4* parts = (const device uint4*)x;\n"
               "uint4 top = parts[4 * row + quarter];\n"
               "uint4 bottom = parts[4 * (row + 8) + quarter];\n"
               "uint4 columns = parts[4 * (row + 16) + quarter];\n"
               "float sums[4];\n"
               "for (int i = 0; i < 4; ++i) sums[i] = 1.0f;\n"
               "multiply_tiles<float16_t>(top, bottom, columns, lane, sums);\n"
               "for (int i = 0; i < 4; ++i)\n"
               "  y[(row + 8 * (i / 2)) * 8 + 2 * quarter + i % 2] = sums[i];",
       .x = x,
       .shape = {16, 8},
       .threads = 32});
  auto wide = mx::astype(x, mx::float32, s);
  auto rows = mx::slice(wide, {0, 0}, {16, 32}, s);
  auto columns = mx::slice(wide, {16, 0}, {24, 32}, s);
  auto expected = mx::add(
      mx::matmul(rows, mx::transpose(columns, s), s), mx::array(1.0f), s);
  CHECK(mx::allclose(y, expected, 1e-5, 1e-5, false, s).item<bool>());
}

TEST_CASE("emulator: all lanes must come to multiply_tiles") {
  check_fault(
      {.body = "uint t = thread_index_in_threadgroup;\nfloat sums[4];\n"
               "for (int i = 0; i < 4; ++i) sums[i] = x[t];\n"
               "uint4 part = uint4(t);\n"
               "if (t < 9) multiply_tiles<half>(part, part, part, t, sums);\n"
               "y[t] = sums[0];"},
      "divergent SIMD operation: waits at multiply_tiles in line");
}
