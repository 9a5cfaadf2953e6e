#pragma once

#include "emulator/machine.h"

namespace nightingale::emulator {

// Threads of a group, each with a stack of its own, that take turns: one runs
// until it calls pause().
class Fibers {
 public:
  static constexpr int kMost = 1024;
  static constexpr Address kStackBytes = 128 * 1024;

  // `stacks` has room for kMost stacks and is readable and writable.
  explicit Fibers(char* stacks);

  // The next resume() of `fiber` begins `run`, which must not return.
  void start(int fiber, void (*run)());
  void resume(int fiber);
  void pause();

  int running() const {
    return running_;
  }
  Range stack(int fiber) const;

 private:
  char* stacks_;
  Address guard_; // bytes at the bottom of a stack that nobody may touch
  int running_ = 0;
  void* caller_ = nullptr;
  void* fibers_[kMost] = {};
};

} // namespace nightingale::emulator
