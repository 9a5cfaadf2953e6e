#include "nightingale/memory.h"

#include <stdlib.h> // says whether this is glibc
#include <sys/mman.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include <algorithm>
#include <cstdint>
#include <string>

#include "nightingale/error.h"

namespace nightingale {

namespace {

constexpr size_t kMegabyte = size_t(1) << 20;
constexpr size_t kHugePage = 2 * kMegabyte;
constexpr size_t kFirstBlock = 32 * kMegabyte;

std::string size_text(size_t nbytes) {
  return nbytes < kMegabyte ? std::to_string(nbytes) + " bytes"
                            : std::to_string(nbytes / kMegabyte) + " MB";
}

} // namespace

void fail_to_allocate(size_t nbytes) {
  throw Error("out of memory: cannot allocate " + size_text(nbytes));
}

mx::allocator::Data allocate(size_t nbytes) {
  auto data = mx::allocator::malloc(nbytes);
  if (nbytes > 0 && data.buffer().ptr() == nullptr) {
    fail_to_allocate(nbytes);
  }
  return data;
}

void require_room(size_t nbytes) {
  void* room = ::mmap(
      nullptr,
      nbytes,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS,
      -1,
      0);
  if (room == MAP_FAILED) {
    fail_to_allocate(nbytes);
  }
  ::munmap(room, nbytes);
}

mx::allocator::Data allocate_block(size_t nbytes) {
  auto data = allocate(nbytes);
#ifdef __linux__
  auto start = reinterpret_cast<uintptr_t>(data.buffer().raw_ptr());
  auto begin = (start + kHugePage - 1) / kHugePage * kHugePage;
  auto end = (start + nbytes) / kHugePage * kHugePage;
  if (begin < end) {
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  }
#endif
  return data;
}

size_t next_block_size(size_t before) {
  return std::clamp(2 * before, kFirstBlock, kLargestBlock);
}

void release_freed_memory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

} // namespace nightingale
