#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "emulator/machine.h"

namespace nightingale::emulator {

// A point in a launch and the thread that was there: the number of barriers so
// far, times 65536, plus the thread. Grows over all launches, so that what is
// left of an earlier launch is older than anything in this one.
using Moment = uint64_t;

inline Moment moment(uint64_t time, int thread) {
  return time << 16 | static_cast<unsigned>(thread);
}
inline int thread_of(Moment m) {
  return m & 0xffff;
}

// When threads were last ordered, for one kind of memory.
struct Ordered {
  uint64_t group = 0; // all threads of the group
  std::array<uint64_t, 32> simdgroups{}; // those of a SIMD group
};

struct Clock {
  uint64_t now = 1;
  uint64_t launch = 1; // when it began
  uint64_t group = 1; // when the group that runs began
  Ordered device, threadgroup;

  void begin_launch();
  void begin_group();
  // All threads of the group, or of one SIMD group, met at a barrier.
  void meet(bool device_memory, bool threadgroup_memory);
  void meet_simdgroup(int simdgroup, bool device, bool threadgroup);
};

enum class Use { input, state, output, threadgroup, stack };

// Who touched some bytes last: enough to find any two threads that did so with
// nothing to order them.
struct Cell {
  Moment written;
  Moment read; // the last
  Moment read_by_other; // the last by another thread than that
  Moment read_by_other_simdgroup;
};

// Address space that kernels run in. Every buffer has a slot of its own, far
// from the others, so that an index that is wrong hits none of them.
class Memory {
 public:
  Memory();
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* stacks() const;
  char* threadgroup_memory() const;

  // Forgets the buffers of the launch before.
  void begin_launch(size_t threadgroup_bytes);
  // A place for a buffer. Its alignment is that of `offset`.
  char* add(
      Use use,
      const std::string& name,
      size_t bytes,
      size_t item_bytes,
      size_t offset);

  // False: the access is a fault, and what() says which.
  bool load(Address address, unsigned size, int thread, const Clock& clock);
  bool store(Address address, unsigned size, int thread, const Clock& clock);
  // False: an output has elements that nobody wrote.
  bool all_written(const Clock& clock);
  const std::string& what() const {
    return what_;
  }

  // Tells the machine where the buffers are.
  void describe(Machine& machine) const;

 private:
  struct Region {
    Use use = Use::input;
    std::string name;
    Address begin = 0, end = 0;
    size_t item_bytes = 1;
    // Cells stand for 4 bytes until something smaller is accessed.
    size_t cell_bytes = 4;
    Cell* cells = nullptr;
    size_t cells_reserved = 0;
    size_t committed = 0;

    size_t cell_count() const {
      return (end - begin + cell_bytes - 1) / cell_bytes;
    }
  };

  Region* region_at(Address address);
  void settle(int slot, size_t bytes, size_t item_bytes, size_t offset);
  void reserve_cells(Region& region);
  void refine(Region& region, size_t cell_bytes);
  Region* checked(Address address, unsigned size, const char* verb);
  // The cells of these bytes, the first of them; cells are made fine enough.
  Cell* cells_of(Region& region, Address address, unsigned size);
  bool fault(std::string what);
  bool race(
      const Region& region,
      Address address,
      const char* verb,
      const char* before,
      Moment other,
      const Clock& clock);
  std::string location_of(const Region& region, Address address) const;

  char* base_;
  std::vector<Region> regions_; // one a slot
  int used_ = 0;
  std::string what_;
};

} // namespace nightingale::emulator
