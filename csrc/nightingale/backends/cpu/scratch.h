#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace nightingale::cpu {

// A cache line, and the widest vector.
constexpr std::align_val_t kScratchAlignment{64};

struct FreeScratch {
  void operator()(void* buffer) const {
    ::operator delete(buffer, kScratchAlignment);
  }
};

// A buffer of the calling thread that grows and is kept, so that a tile does
// not allocate. Each `Tag` type names one buffer; its content lasts until the
// same thread asks for the same tag again.
template <typename Tag, typename T = float>
T* scratch(size_t count) {
  thread_local std::unique_ptr<void, FreeScratch> buffer;
  thread_local size_t capacity = 0;
  if (count > capacity) {
    buffer.reset(); // first, so that both are never held
    buffer.reset(::operator new(count * sizeof(T), kScratchAlignment));
    capacity = count;
  }
  return static_cast<T*>(buffer.get());
}

} // namespace nightingale::cpu
