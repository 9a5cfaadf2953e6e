#include "nightingale/backends/cpu/buffers.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "mlx/memory.h"
#include "nightingale/memory.h"

namespace nightingale::cpu {

namespace {

using mx::allocator::Buffer;

constexpr size_t kSmallest = 64;
constexpr size_t kLine = 64;

// Sizes are rounded up to an eighth of a power of two: at most an eighth more.
size_t size_class(size_t bytes) {
  if (bytes <= kSmallest) {
    return kSmallest;
  }
  size_t step = std::bit_floor(bytes) / 8;
  return (bytes + step - 1) / step * step;
}

class BufferPool {
 public:
  Buffer take(size_t size) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      auto& idle = idle_[size];
      if (!idle.empty()) {
        // The one given back last: most of it is still in the cache.
        Buffer buffer = idle.back().buffer;
        idle.pop_back();
        idle_bytes_ -= size;
        return buffer;
      }
      ++system_allocations_;
    }
    return allocated(size);
  }

  bool has_idle(size_t size) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = idle_.find(size);
    return it != idle_.end() && !it->second.empty();
  }

  void give_back(Buffer buffer, size_t size) {
    std::unique_lock<std::mutex> lock(mutex_);
    try {
      idle_[size].push_back({buffer, ++clock_});
    } catch (const std::bad_alloc&) { // called by destructors
      mx::allocator::allocator().free(buffer);
      return;
    }
    idle_bytes_ += size;
    shrink_to(limit_, std::move(lock));
  }

  void trim(size_t keep) {
    shrink_to(keep, std::unique_lock<std::mutex>(mutex_));
  }

  void set_limit(size_t bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    limit_ = bytes;
    shrink_to(limit_, std::move(lock));
  }

  size_t idle_bytes() {
    std::lock_guard<std::mutex> lock(mutex_);
    return idle_bytes_;
  }

  uint64_t system_allocations() {
    std::lock_guard<std::mutex> lock(mutex_);
    return system_allocations_;
  }

 private:
  struct Idle {
    Buffer buffer;
    uint64_t since;
  };

  Buffer allocated(size_t size) {
    size_t bytes = size + kLine; // for line_offset()
    Buffer buffer = mx::allocator::allocator().malloc(bytes);
    if (buffer.ptr() == nullptr) {
      trim(0);
      buffer = mx::allocator::allocator().malloc(bytes);
    }
    if (buffer.ptr() == nullptr) {
      fail_to_allocate(size);
    }
    return buffer;
  }

  // Frees the longest idle until `limit` bytes are left, after it unlocks.
  void shrink_to(size_t limit, std::unique_lock<std::mutex> lock) {
    std::vector<Buffer> surplus;
    while (idle_bytes_ > limit) {
      auto oldest = idle_.end();
      for (auto it = idle_.begin(); it != idle_.end(); ++it) {
        if (!it->second.empty() &&
            (oldest == idle_.end() ||
             it->second.front().since < oldest->second.front().since)) {
          oldest = it;
        }
      }
      surplus.push_back(oldest->second.front().buffer);
      oldest->second.erase(oldest->second.begin());
      idle_bytes_ -= oldest->first;
    }
    lock.unlock();
    for (Buffer buffer : surplus) {
      mx::allocator::allocator().free(buffer);
    }
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<Idle>> idle_; // by size, oldest first
  size_t idle_bytes_ = 0;
  size_t limit_ = size_t(256) << 20;
  uint64_t clock_ = 0;
  uint64_t system_allocations_ = 0;
};

BufferPool& pool() {
  // Never destroyed: arrays may be given back at process exit.
  static auto* instance = new BufferPool;
  return *instance;
}

} // namespace

mx::allocator::Data pooled_data(size_t bytes) {
  size_t size = size_class(bytes);
  return mx::allocator::Data(pool().take(size), [size](Buffer buffer) {
    pool().give_back(buffer, size);
  });
}

size_t line_offset(Buffer buffer) {
  return -reinterpret_cast<uintptr_t>(buffer.raw_ptr()) % kLine;
}

bool has_idle(size_t bytes) {
  return pool().has_idle(size_class(bytes));
}

size_t idle_bytes() {
  return pool().idle_bytes();
}

void set_idle_limit(size_t bytes) {
  pool().set_limit(bytes);
}

uint64_t system_allocations() {
  return pool().system_allocations();
}

void trim(size_t keep) {
  pool().trim(keep);
  mx::clear_cache(); // MLX keeps what it is given back, too
}

} // namespace nightingale::cpu
