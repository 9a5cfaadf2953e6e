#include "nightingale/io/weight_memory.h"

#include <algorithm>
#include <cstdint>

#include "nightingale/memory.h"

namespace nightingale {

namespace {

constexpr size_t kLine = 64;

size_t round_up(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

mx::array make_block(size_t nbytes) {
  return mx::array(
      allocate_block(nbytes), {static_cast<int>(nbytes)}, mx::uint8);
}

} // namespace

mx::array WeightMemory::allocate(const mx::Shape& shape, mx::Dtype dtype) {
  mx::array weights(shape, dtype, nullptr, {});
  size_t room = weights.nbytes() + kLine;
  if (room > kLargestBlock) {
    // Too large to share, and for an int32 count of bytes perhaps too.
    return mx::array(nightingale::allocate(weights.nbytes()), shape, dtype);
  }
  size_t held = block_ ? block_->nbytes() : 0;
  if (used_ + room > held) {
    block_ = make_block(std::max(next_block_size(held), room));
    used_ = 0;
  }
  auto start = reinterpret_cast<uintptr_t>(block_->data<char>());
  size_t offset = round_up(start + used_, kLine) - start;
  used_ = offset + weights.nbytes();
  weights.copy_shared_buffer(
      *block_,
      weights.strides(),
      {true, true, shape.size() <= 1},
      weights.size(),
      static_cast<int64_t>(offset / dtype.size()));
  weights.set_status(mx::array::Status::available);
  return weights;
}

} // namespace nightingale
