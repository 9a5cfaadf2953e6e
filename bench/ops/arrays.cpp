#include "arrays.h"

#include <algorithm>
#include <cstdint>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "mlx/allocator.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"

namespace nightingale::bench {

namespace {

constexpr int kColdHalves = 1 << 29;

// Twice the same 16 bits make a small normal number in all three types: 0.01
// as float32 and bfloat16, 1.06 as float16.
constexpr uint16_t kPattern = 0x3c3c;

void advise_huge_pages(void* data, size_t nbytes) {
#if defined(__linux__)
  constexpr uintptr_t page = 4096;
  auto at = reinterpret_cast<uintptr_t>(data);
  uintptr_t begin = (at + page - 1) & ~(page - 1);
  uintptr_t end = (at + nbytes) & ~(page - 1);
  if (begin < end) {
    madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
}

// In halves of a float32.
int size_in_halves(const mx::Shape& shape, mx::Dtype dtype) {
  int count = mx::size_of(dtype) / sizeof(uint16_t);
  for (int size : shape) {
    count *= size;
  }
  return count;
}

// As the model's weights are allocated: from MLX, in huge pages.
mx::array patterned(int halves) {
  size_t nbytes = size_t(halves) * sizeof(uint16_t);
  auto data = mx::allocator::malloc(nbytes);
  void* buffer = data.buffer().raw_ptr();
  advise_huge_pages(buffer, nbytes);
  std::fill_n(static_cast<uint16_t*>(buffer), halves, kPattern);
  return mx::array(std::move(data), {halves}, mx::uint16);
}

mx::array as(const mx::array& halves, const mx::Shape& shape, mx::Dtype dtype) {
  auto s = cpu_stream();
  return mx::reshape(mx::view(halves, dtype, s), shape, s);
}

} // namespace

mx::array warm(const mx::Shape& shape, mx::Dtype dtype) {
  auto x = as(patterned(size_in_halves(shape, dtype)), shape, dtype);
  mx::eval(x);
  return x;
}

Cold::Cold(const mx::Shape& shape, mx::Dtype dtype) {
  static const mx::array buffer = patterned(kColdHalves);
  int size = size_in_halves(shape, dtype);
  for (int begin = 0; begin + size <= kColdHalves; begin += size) {
    auto part = mx::slice(buffer, {begin}, {begin + size}, cpu_stream());
    arrays_.push_back(as(part, shape, dtype));
  }
  mx::eval(arrays_);
}

const mx::array& Cold::next() {
  at_ = (at_ + 1) % arrays_.size();
  return arrays_[at_];
}

} // namespace nightingale::bench
