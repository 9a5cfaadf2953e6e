#pragma once

#include "nightingale/backends/cpu/threads.h"

namespace nightingale::testing {

// Sets the thread count of the CPU backend while it lives.
struct ThreadCount {
  explicit ThreadCount(int count) : before(cpu::threads()) {
    cpu::set_threads(count);
  }
  ~ThreadCount() {
    cpu::set_threads(before);
  }
  ThreadCount(const ThreadCount&) = delete;

  int before;
};

} // namespace nightingale::testing
