#include "nightingale/ops/matrix.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/packed_matrix.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"
#include "nightingale/memory.h"

namespace nightingale::cpu {

namespace {

struct RowIntegers;
struct RowScales;

constexpr int kBlockBytes = 4 * kQuantizedTile;

// One row of a matrix, a byte for each weight.
struct QuantizedRow {
  uint8_t* quantized; // [groups * kQuantizedGroup]
  uint16_t* scales; // [groups]
  uint16_t* biases;
};

QuantizedRow scratch_row(int groups) {
  uint16_t* scales = scratch<RowScales, uint16_t>(2 * groups);
  return {
      scratch<RowIntegers, uint8_t>(groups * kQuantizedGroup),
      scales,
      scales + groups};
}

// One group of a row within its tile.
struct GroupSlot {
  uint8_t* group;
  int row; // of the tile
  int bits;

  void put(const uint8_t* quantized, uint16_t scale, uint16_t bias) const {
    for (int block = 0; block < blocks(); ++block) {
      const uint8_t* from = quantized + 4 * block;
      for (int i = 0; i < 4; ++i) {
        int column = kQuantizedOrder[i];
        int level = from[column];
        if (bits == 4) {
          level |= from[column + kQuantizedGroup / 2] << 4;
        }
        at(block)[i] = static_cast<uint8_t>(level);
      }
    }
    std::memcpy(scales() + 2 * row, &scale, sizeof(scale));
    std::memcpy(scales() + 2 * (kQuantizedTile + row), &bias, sizeof(bias));
  }

  void get(uint8_t* quantized, uint16_t* scale, uint16_t* bias) const {
    for (int block = 0; block < blocks(); ++block) {
      uint8_t* to = quantized + 4 * block;
      for (int i = 0; i < 4; ++i) {
        int column = kQuantizedOrder[i], level = at(block)[i];
        to[column] = static_cast<uint8_t>(bits == 4 ? level & 0xf : level);
        if (bits == 4) {
          to[column + kQuantizedGroup / 2] = static_cast<uint8_t>(level >> 4);
        }
      }
    }
    std::memcpy(scale, scales() + 2 * row, sizeof(*scale));
    std::memcpy(bias, scales() + 2 * (kQuantizedTile + row), sizeof(*bias));
  }

 private:
  int blocks() const {
    return quantized_bytes(bits) / kBlockBytes;
  }
  uint8_t* at(int block) const {
    return group + block * kBlockBytes + 4 * row;
  }
  uint8_t* scales() const {
    return group + quantized_bytes(bits);
  }
};

GroupSlot slot_of(const mx::array& packed, int row, int group, int bits) {
  // What is packed is read through the same pointer that writes it.
  auto* base = const_cast<uint8_t*>(packed.data<uint8_t>());
  int64_t index = int64_t(row / kQuantizedTile) * packed.shape(1) + group;
  return {base + index * packed.shape(2), row % kQuantizedTile, bits};
}

mx::array packed_array(int rows, int columns, int bits) {
  return packed_memory(
      {ceil_div(rows, kQuantizedTile),
       columns / kQuantizedGroup,
       quantized_group_bytes(bits)});
}

// Fills the tiles; fill(row, quantized) gives a row.
template <typename F>
void pack_rows(mx::array& packed, int rows, int bits, F fill) {
  int groups = packed.shape(1);
  parallel_for(packed.shape(0), [&](int tile) {
    QuantizedRow quantized = scratch_row(groups);
    for (int i = 0; i < kQuantizedTile; ++i) {
      int row = tile * kQuantizedTile + i;
      if (row < rows) {
        fill(row, quantized);
      } else {
        std::fill_n(quantized.quantized, groups * kQuantizedGroup, uint8_t(0));
        std::fill_n(quantized.scales, 2 * groups, uint16_t(0));
      }
      for (int g = 0; g < groups; ++g) {
        slot_of(packed, row, g, bits)
            .put(
                quantized.quantized + g * kQuantizedGroup,
                quantized.scales[g],
                quantized.biases[g]);
      }
    }
  });
}

// The bytes of one row in MLX's format: at 4 bits two weights in each.
int row_bytes(int columns, int bits) {
  return columns * bits / 8;
}

void split_bytes(
    const uint8_t* bytes,
    int columns,
    int bits,
    uint8_t* quantized) {
  for (int k = 0; k < columns; ++k) {
    quantized[k] = bits == 8 ? bytes[k] : bytes[k / 2] >> (k % 2 * 4) & 0xf;
  }
}

void join_bytes(
    const uint8_t* quantized,
    int columns,
    int bits,
    uint8_t* bytes) {
  for (int i = 0; i < row_bytes(columns, bits); ++i) {
    bytes[i] = bits == 8
        ? quantized[i]
        : static_cast<uint8_t>(quantized[2 * i] | quantized[2 * i + 1] << 4);
  }
}

// As float16, row-major; an Error where a number becomes infinite.
mx::array as_half(const mx::array& x, mx::Stream s) {
  auto half = mx::contiguous(mx::astype(x, mx::float16, s), false, s);
  if (!mx::all(mx::isfinite(half, s), s).item<bool>()) {
    throw Error(
        "scales and biases of quantized weights must be finite in float16");
  }
  return half;
}

} // namespace

ops::Matrix quantize_matrix(const mx::array& given, int bits, mx::Stream s) {
  auto w = ops::computed(mx::contiguous(given, false, s));
  int rows = w.shape(0), columns = w.shape(1);
  int groups = columns / kQuantizedGroup;
  storage_of(w); // an Error here, not in a tile
  mx::array packed = packed_array(rows, columns, bits);
  std::atomic<bool> encoded = true;
  pack_rows(packed, rows, bits, [&](int row, const QuantizedRow& quantized) {
    const float* floats = read_floats(w, int64_t(row) * columns, columns);
    if (!simd().quantized.encode(
            floats,
            groups,
            bits,
            quantized.quantized,
            quantized.scales,
            quantized.biases)) {
      encoded = false;
    }
  });
  if (!encoded) {
    throw Error(
        "weights that are not finite, or too large for scales in float16, "
        "cannot be quantised");
  }
  return ops::Matrix::packed(packed, rows, bits);
}

ops::Matrix
pack_matrix(const ops::QuantizedTensor& tensor, int bits, mx::Stream s) {
  ops::QuantizedTensor from{
      mx::contiguous(tensor.quantized, false, s),
      as_half(tensor.scales, s),
      as_half(tensor.biases, s)};
  mx::eval(from.quantized, from.scales, from.biases);
  int rows = from.scales.shape(0), groups = from.scales.shape(1);
  int columns = groups * kQuantizedGroup;
  mx::array packed = packed_array(rows, columns, bits);
  auto* bytes =
      reinterpret_cast<const uint8_t*>(from.quantized.data<uint32_t>());
  pack_rows(packed, rows, bits, [&](int row, const QuantizedRow& quantized) {
    split_bytes(
        bytes + int64_t(row) * row_bytes(columns, bits),
        columns,
        bits,
        quantized.quantized);
    std::copy_n(
        from.scales.data<uint16_t>() + int64_t(row) * groups,
        groups,
        quantized.scales);
    std::copy_n(
        from.biases.data<uint16_t>() + int64_t(row) * groups,
        groups,
        quantized.biases);
  });
  return ops::Matrix::packed(packed, rows, bits);
}

ops::QuantizedTensor unpack_matrix(const ops::Matrix& matrix) {
  const auto& packed = matrix.w;
  int rows = matrix.rows(), bits = matrix.bits;
  int groups = packed.shape(1), columns = groups * kQuantizedGroup;
  auto made = [](const mx::Shape& shape, mx::Dtype dtype) {
    mx::array x(shape, dtype, nullptr, {});
    return mx::array(allocate(x.nbytes()), shape, dtype);
  };
  ops::QuantizedTensor to{
      made({rows, columns * bits / 32}, mx::uint32),
      made({rows, groups}, mx::float16),
      made({rows, groups}, mx::float16)};
  auto* bytes = reinterpret_cast<uint8_t*>(to.quantized.data<uint32_t>());
  parallel_for(rows, [&](int row) {
    QuantizedRow quantized = scratch_row(groups);
    for (int g = 0; g < groups; ++g) {
      int64_t at = int64_t(row) * groups + g;
      slot_of(packed, row, g, bits)
          .get(
              quantized.quantized + g * kQuantizedGroup,
              to.scales.data<uint16_t>() + at,
              to.biases.data<uint16_t>() + at);
    }
    join_bytes(
        quantized.quantized,
        columns,
        bits,
        bytes + int64_t(row) * row_bytes(columns, bits));
  });
  return to;
}

ops::Matrix
packed_columns(const ops::Matrix& packed, int begin, int count, int taps) {
  if (begin % kQuantizedGroup != 0 || count % kQuantizedGroup != 0) {
    throw Error(
        "quantized weights are cut between groups of " +
        std::to_string(kQuantizedGroup));
  }
  const auto& w = packed.w;
  auto cpu = mx::Device::cpu;
  auto parts = mx::reshape(w, {w.shape(0), taps, -1, w.shape(2)}, cpu);
  mx::Shape start(4, 0), stop = parts.shape();
  start[2] = begin / kQuantizedGroup;
  stop[2] = start[2] + count / kQuantizedGroup;
  auto some = mx::contiguous(mx::slice(parts, start, stop, cpu), false, cpu);
  auto flat = mx::reshape(some, {w.shape(0), -1, w.shape(2)}, cpu);
  auto columns =
      ops::Matrix::packed(ops::computed(flat), packed.rows(), packed.bits);
  columns.row_bits = packed.row_bits;
  return columns;
}

} // namespace nightingale::cpu
