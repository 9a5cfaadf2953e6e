#include "nightingale/backends/cpu/code_format.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "nightingale/error.h"
#include "nightingale/backends/cpu/code_memory.h"
#include "nightingale/backends/cpu/stored_floats.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct RowCodes;
struct RowScales;

constexpr int kBlockBytes = 4 * kCodeTile;

// One row of a matrix, a byte for each code.
struct CodeRow {
  uint8_t* codes; // [groups * kCodeGroup]
  uint16_t* scales; // [groups]
  uint16_t* biases;
};

CodeRow scratch_row(int groups) {
  uint16_t* scales = scratch<RowScales, uint16_t>(2 * groups);
  return {
      scratch<RowCodes, uint8_t>(groups * kCodeGroup), scales, scales + groups};
}

// One group of a row within its tile.
struct Place {
  uint8_t* group;
  int row; // of the tile
  int bits;

  void put(const uint8_t* codes, uint16_t scale, uint16_t bias) const {
    for (int block = 0; block < blocks(); ++block) {
      const uint8_t* from = codes + 4 * block;
      for (int i = 0; i < 4; ++i) {
        int column = kCodeOrder[i];
        int code = from[column];
        if (bits == 4) {
          code |= from[column + kCodeGroup / 2] << 4;
        }
        at(block)[i] = static_cast<uint8_t>(code);
      }
    }
    std::memcpy(scales() + 2 * row, &scale, sizeof(scale));
    std::memcpy(scales() + 2 * (kCodeTile + row), &bias, sizeof(bias));
  }

  void get(uint8_t* codes, uint16_t* scale, uint16_t* bias) const {
    for (int block = 0; block < blocks(); ++block) {
      uint8_t* to = codes + 4 * block;
      for (int i = 0; i < 4; ++i) {
        int column = kCodeOrder[i], code = at(block)[i];
        to[column] = static_cast<uint8_t>(bits == 4 ? code & 0xf : code);
        if (bits == 4) {
          to[column + kCodeGroup / 2] = static_cast<uint8_t>(code >> 4);
        }
      }
    }
    std::memcpy(scale, scales() + 2 * row, sizeof(*scale));
    std::memcpy(bias, scales() + 2 * (kCodeTile + row), sizeof(*bias));
  }

 private:
  int blocks() const {
    return code_bytes(bits) / kBlockBytes;
  }
  uint8_t* at(int block) const {
    return group + block * kBlockBytes + 4 * row;
  }
  uint8_t* scales() const {
    return group + code_bytes(bits);
  }
};

Place place_of(const mx::array& packed, int row, int group, int bits) {
  // What is packed is read through the same pointer that writes it.
  auto* base = const_cast<uint8_t*>(packed.data<uint8_t>());
  int64_t index = int64_t(row / kCodeTile) * packed.shape(1) + group;
  return {base + index * packed.shape(2), row % kCodeTile, bits};
}

mx::array packed_array(int rows, int columns, int bits) {
  return code_array(
      {pieces(rows, kCodeTile), columns / kCodeGroup, code_group_bytes(bits)});
}

// Fills the tiles: fill(row, codes) gives the codes of a row.
template <typename F>
void pack_rows(mx::array& packed, int rows, int bits, F fill) {
  int groups = packed.shape(1);
  parallel_for(packed.shape(0), [&](int tile) {
    CodeRow codes = scratch_row(groups);
    for (int i = 0; i < kCodeTile; ++i) {
      int row = tile * kCodeTile + i;
      if (row < rows) {
        fill(row, codes);
      } else {
        std::fill_n(codes.codes, groups * kCodeGroup, uint8_t(0));
        std::fill_n(codes.scales, 2 * groups, uint16_t(0));
      }
      for (int g = 0; g < groups; ++g) {
        place_of(packed, row, g, bits)
            .put(
                codes.codes + g * kCodeGroup, codes.scales[g], codes.biases[g]);
      }
    }
  });
}

// The bytes of one row of MLX's codes: two codes of 4 bits in each.
int row_bytes(int columns, int bits) {
  return columns * bits / 8;
}

void split_bytes(const uint8_t* bytes, int columns, int bits, uint8_t* codes) {
  for (int k = 0; k < columns; ++k) {
    codes[k] = bits == 8 ? bytes[k] : bytes[k / 2] >> (k % 2 * 4) & 0xf;
  }
}

void join_bytes(const uint8_t* codes, int columns, int bits, uint8_t* bytes) {
  for (int i = 0; i < row_bytes(columns, bits); ++i) {
    bytes[i] = bits == 8
        ? codes[i]
        : static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
  }
}

} // namespace

mx::array encode_matrix(const mx::array& w, int bits) {
  int rows = w.shape(0), columns = w.shape(1);
  int groups = columns / kCodeGroup;
  storage_of(w); // an Error here, not in a tile
  mx::array packed = packed_array(rows, columns, bits);
  std::atomic<bool> encoded = true;
  pack_rows(packed, rows, bits, [&](int row, const CodeRow& codes) {
    const float* floats = read_floats(w, int64_t(row) * columns, columns);
    if (!simd().codes.encode(
            floats, groups, bits, codes.codes, codes.scales, codes.biases)) {
      encoded = false;
    }
  });
  if (!encoded) {
    throw Error(
        "weights that are not finite, or too large for scales in float16, "
        "cannot be quantised");
  }
  return packed;
}

mx::array pack_codes(const ops::Codes& from, int bits) {
  int rows = from.scales.shape(0), groups = from.scales.shape(1);
  int columns = groups * kCodeGroup;
  mx::array packed = packed_array(rows, columns, bits);
  auto* bytes = reinterpret_cast<const uint8_t*>(from.codes.data<uint32_t>());
  pack_rows(packed, rows, bits, [&](int row, const CodeRow& codes) {
    split_bytes(
        bytes + int64_t(row) * row_bytes(columns, bits),
        columns,
        bits,
        codes.codes);
    std::copy_n(
        from.scales.data<uint16_t>() + int64_t(row) * groups,
        groups,
        codes.scales);
    std::copy_n(
        from.biases.data<uint16_t>() + int64_t(row) * groups,
        groups,
        codes.biases);
  });
  return packed;
}

ops::Codes unpack_codes(const mx::array& packed, int rows, int bits) {
  int groups = packed.shape(1), columns = groups * kCodeGroup;
  auto made = [](const mx::Shape& shape, mx::Dtype dtype) {
    mx::array x(shape, dtype, nullptr, {});
    return mx::array(mx::allocator::malloc(x.nbytes()), shape, dtype);
  };
  ops::Codes to{
      made({rows, columns * bits / 32}, mx::uint32),
      made({rows, groups}, mx::float16),
      made({rows, groups}, mx::float16)};
  auto* bytes = reinterpret_cast<uint8_t*>(to.codes.data<uint32_t>());
  parallel_for(rows, [&](int row) {
    CodeRow codes = scratch_row(groups);
    for (int g = 0; g < groups; ++g) {
      int64_t at = int64_t(row) * groups + g;
      place_of(packed, row, g, bits)
          .get(
              codes.codes + g * kCodeGroup,
              to.scales.data<uint16_t>() + at,
              to.biases.data<uint16_t>() + at);
    }
    join_bytes(
        codes.codes,
        columns,
        bits,
        bytes + int64_t(row) * row_bytes(columns, bits));
  });
  return to;
}

} // namespace nightingale::cpu
