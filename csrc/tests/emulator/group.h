#pragma once

#include <array>
#include <string>
#include <vector>

#include "emulator/fibers.h"
#include "emulator/machine.h"
#include "emulator/memory.h"

namespace nightingale::emulator {

// What a kernel did wrong.
struct Fault {
  std::string what;
  Index3 group;
  int thread;
  Address site = 0; // in the kernel's code, or
  int line = 0; // of its text
};

// Runs the threads of a kernel in lock-step: each goes on until it meets a
// barrier or a SIMD operation, and waits there for the others.
class Groups {
 public:
  Groups();

  Memory& memory() {
    return memory_;
  }

  // Throws the Fault if there is one.
  void run(
      void (*kernel)(void* const*, const Position&),
      Machine*& machine_of_kernel,
      const std::vector<void*>& buffers,
      Index3 groups,
      int threads);

 private:
  struct Thread {
    bool ended;
    Arrival arrival;
    unsigned result;
  };

  static void run_thread();
  static void on_load(Address address, unsigned size, Address site);
  static void on_store(Address address, unsigned size, Address site);
  static unsigned on_exchange(const Arrival& arrival);
  static void on_undefined(const char* what, unsigned line);

  void run_group();
  void run_simdgroup(int simdgroup);
  void resume(int thread);
  void meet(int first, int count);
  void exchange(int first);
  [[noreturn]] void stop(Fault fault);
  [[noreturn]] void fail(const std::string& what, int thread, int line);

  Memory memory_;
  Fibers fibers_;
  Clock clock_;
  Machine machine_;
  void (*kernel_)(void* const*, const Position&) = nullptr;
  void* const* buffers_ = nullptr;
  Index3 group_{}, groups_{};
  int threads_ = 0;
  std::array<Thread, Fibers::kMost> states_;
  bool faulty_ = false;
  Fault fault_;
};

} // namespace nightingale::emulator
