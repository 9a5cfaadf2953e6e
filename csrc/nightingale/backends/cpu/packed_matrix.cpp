#include "nightingale/backends/cpu/packed_matrix.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>

#include "nightingale/memory.h"

namespace nightingale::cpu {

namespace {

// One row's part of a group. quantized: of its first four columns
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

using mx::allocator::Buffer;
using mx::allocator::Data;

constexpr size_t kLine = 64;

size_t round_up(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

struct Block {
  explicit Block(size_t size) : data(allocate_block(size)), size(size) {}

  // Where `nbytes` more begin, or `size` if they do not fit.
  size_t place(size_t nbytes) {
    auto start = reinterpret_cast<uintptr_t>(data.buffer().raw_ptr());
    size_t offset = round_up(start + used, kLine) - start;
    if (offset + nbytes > size) {
      return size;
    }
    used = offset + nbytes;
    return offset;
  }

  Data data;
  size_t size;
  size_t used = 0;
};

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

mx::array packed_memory(const mx::Shape& shape) {
  static std::mutex mutex;
  static std::weak_ptr<Block> last;
  mx::array quantized(shape, mx::uint8, nullptr, {});
  std::lock_guard<std::mutex> lock(mutex);
  auto block = last.lock();
  size_t offset = block ? block->place(quantized.nbytes()) : 0;
  if (!block || offset == block->size) {
    block = std::make_shared<Block>(std::max(
        next_block_size(block ? block->size : 0), quantized.nbytes() + kLine));
    offset = block->place(quantized.nbytes());
    last = block;
  }
  quantized.set_data(
      Data(block->data.buffer(), [block](Buffer) {}),
      quantized.size(),
      quantized.strides(),
      {true, true, shape.size() <= 1},
      static_cast<int64_t>(offset));
  quantized.set_status(mx::array::Status::available);
  return quantized;
}

} // namespace nightingale::cpu
