#pragma once

// What a compiled kernel and the emulator share. Kernels include this too, so
// it needs no other header.

namespace nightingale::emulator {

using Address = unsigned long;

enum class Exchange {
  threadgroup_barrier,
  simdgroup_barrier,
  simd_sum,
  simd_max,
  simd_min,
  simd_shuffle,
  simd_shuffle_xor,
  simd_shuffle_down,
  simd_broadcast,
  multiply_tiles,
};

enum class Number { none, real, integer, natural };

// What a lane brings to multiply_tiles, by 32-bit registers of PTX's
// mma.m16n8k16, two of which make it up; a register is two numbers.
struct TileRegisters {
  float a[2][4][2];
  float b[2][2][2];
  float* sums; // 4
};

// One thread's part in a barrier or a SIMD operation.
struct Arrival {
  Exchange operation;
  Number type; // of `value`
  unsigned value; // bits of what the thread brings
  unsigned argument; // lane, mask, delta or memory flags
  Address site; // the call in the kernel
  int line;
  const TileRegisters* tiles = nullptr;
};

struct Index3 {
  unsigned x, y, z;
};

struct Position {
  Index3 group, groups;
  unsigned thread_index;
};

struct Range {
  Address begin, end;

  bool holds(Address address, unsigned size) const {
    return address >= begin && address + size <= end;
  }
};

constexpr int kSlots = 64;
constexpr int kSlotBits = 28;

struct Machine {
  // What needs no further check: the stack of the thread that runs, and reads
  // of inputs. Each buffer has a slot of address space.
  Range stack;
  Address slots;
  Range inputs[kSlots];
  char* threadgroup_memory;
  void (*load)(Address address, unsigned size, Address site);
  void (*store)(Address address, unsigned size, Address site);
  unsigned (*exchange)(const Arrival& arrival);
  void (*undefined)(const char* what, unsigned line);

  bool may_read(Address address, unsigned size) const {
    Address slot = (address - slots) >> kSlotBits;
    return stack.holds(address, size) ||
        (slot < kSlots && inputs[slot].holds(address, size));
  }
};

} // namespace nightingale::emulator
