#include "nightingale/io/weight_memory.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstdint>

#include "mlx/allocator.h"

namespace nightingale {

namespace {

constexpr size_t kLine = 64;
constexpr size_t kHugePage = size_t(2) << 20;
constexpr size_t kBlock = size_t(256) << 20; // pages never touched cost nothing

size_t round_up(size_t value, size_t step) {
  return (value + step - 1) / step * step;
}

mx::array make_block(size_t nbytes) {
  auto data = mx::allocator::malloc(nbytes);
#ifdef __linux__
  auto begin = reinterpret_cast<uintptr_t>(data.buffer().raw_ptr());
  auto end = (begin + nbytes) / kHugePage * kHugePage;
  begin = round_up(begin, kHugePage);
  if (begin < end) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
  return mx::array(std::move(data), {static_cast<int>(nbytes)}, mx::uint8);
}

} // namespace

mx::array WeightMemory::allocate(const mx::Shape& shape, mx::Dtype dtype) {
  mx::array weights(shape, dtype, nullptr, {});
  size_t room = weights.nbytes() + kLine;
  if (room > kBlock) {
    // Too large to share, and for an int32 count of bytes perhaps too.
    return mx::array(mx::allocator::malloc(weights.nbytes()), shape, dtype);
  }
  if (!block_ || used_ + room > block_->nbytes()) {
    block_ = make_block(kBlock);
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
