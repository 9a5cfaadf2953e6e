#pragma once

#include <cstddef>
#include <memory>

namespace nightingale::cpu {

// A float buffer of the calling thread that grows and is kept, so that a tile
// does not allocate. Each `Tag` type names one buffer; its content lasts until
// the same thread asks for the same tag again.
template <typename Tag>
float* scratch(size_t count) {
  thread_local std::unique_ptr<float[]> buffer;
  thread_local size_t capacity = 0;
  if (count > capacity) {
    buffer.reset(new float[count]);
    capacity = count;
  }
  return buffer.get();
}

} // namespace nightingale::cpu
