#include "emulator/group.h"

#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "emulator/tile_product.h"

namespace nightingale::emulator {

namespace {

constexpr int kLanes = 32;
constexpr unsigned kDeviceMemory = 1, kThreadgroupMemory = 2; // of mem_flags

// The one that runs: hooks are plain functions.
Groups* running = nullptr;

const char* name_of(Exchange operation) {
  switch (operation) {
    case Exchange::threadgroup_barrier:
      return "threadgroup_barrier";
    case Exchange::simdgroup_barrier:
      return "simdgroup_barrier";
    case Exchange::simd_sum:
      return "simd_sum";
    case Exchange::simd_max:
      return "simd_max";
    case Exchange::simd_min:
      return "simd_min";
    case Exchange::simd_shuffle:
      return "simd_shuffle";
    case Exchange::simd_shuffle_xor:
      return "simd_shuffle_xor";
    case Exchange::simd_shuffle_down:
      return "simd_shuffle_down";
    case Exchange::simd_broadcast:
      return "simd_broadcast";
    case Exchange::multiply_tiles:
      return "multiply_tiles";
  }
  return "";
}

template <typename T>
T value_of(unsigned bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
unsigned bits_of(T value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

template <typename T>
T combined(Exchange operation, T a, T b) {
  if (operation == Exchange::simd_sum) {
    return a + b;
  }
  if constexpr (std::is_same_v<T, float>) {
    return operation == Exchange::simd_max ? std::fmax(a, b) : std::fmin(a, b);
  } else {
    return operation == Exchange::simd_max ? std::max(a, b) : std::min(a, b);
  }
}

// In the order of CUDA's butterfly: lanes 16 apart first, neighbours last.
template <typename T>
unsigned reduced(Exchange operation, std::array<unsigned, kLanes> lanes) {
  for (int apart = kLanes / 2; apart > 0; apart /= 2) {
    for (int i = 0; i < apart; ++i) {
      lanes[i] = bits_of(combined(
          operation, value_of<T>(lanes[i]), value_of<T>(lanes[i + apart])));
    }
  }
  return lanes[0];
}

unsigned reduced(
    Exchange operation,
    Number type,
    const std::array<unsigned, kLanes>& lanes) {
  switch (type) {
    case Number::real:
      return reduced<float>(operation, lanes);
    case Number::integer:
      // Sums wrap around, which only unsigned numbers may do in C++.
      return operation == Exchange::simd_sum
          ? reduced<unsigned>(operation, lanes)
          : reduced<int>(operation, lanes);
    default:
      return reduced<unsigned>(operation, lanes);
  }
}

std::string where(const Arrival& arrival) {
  return std::string(name_of(arrival.operation)) + " in line " +
      std::to_string(arrival.line);
}

// The kernel's own tables of constants.
bool in_kernel_image(Address address, Address site) {
  Dl_info data, code;
  return dladdr(reinterpret_cast<void*>(address), &data) != 0 &&
      dladdr(reinterpret_cast<void*>(site), &code) != 0 &&
      data.dli_fbase == code.dli_fbase;
}

} // namespace

Groups::Groups() : fibers_(memory_.stacks()) {
  machine_.load = on_load;
  machine_.store = on_store;
  machine_.exchange = on_exchange;
  machine_.undefined = on_undefined;
}

void Groups::run(
    void (*kernel)(void* const*, const Position&),
    Machine*& machine_of_kernel,
    const std::vector<void*>& buffers,
    Index3 groups,
    int threads) {
  running = this;
  kernel_ = kernel;
  machine_of_kernel = &machine_;
  memory_.describe(machine_);
  buffers_ = buffers.data();
  groups_ = groups;
  threads_ = threads;
  faulty_ = false;
  clock_.begin_launch();
  for (group_.z = 0; group_.z < groups.z; ++group_.z) {
    for (group_.y = 0; group_.y < groups.y; ++group_.y) {
      for (group_.x = 0; group_.x < groups.x; ++group_.x) {
        run_group();
      }
    }
  }
  if (!memory_.all_written(clock_)) {
    throw Fault{memory_.what(), {}, -1};
  }
}

void Groups::run_group() {
  clock_.begin_group();
  for (int i = 0; i < threads_; ++i) {
    states_[i].ended = false;
    fibers_.start(i, run_thread);
  }
  for (;;) {
    for (int s = 0; s < threads_ / kLanes; ++s) {
      run_simdgroup(s);
    }
    meet(0, threads_);
    if (states_[0].ended) {
      return;
    }
    auto flags = states_[0].arrival.argument;
    clock_.meet(flags & kDeviceMemory, flags & kThreadgroupMemory);
  }
}

// Until all its threads are at a barrier of the whole group, or have ended.
void Groups::run_simdgroup(int simdgroup) {
  int first = simdgroup * kLanes;
  for (;;) {
    for (int i = 0; i < kLanes; ++i) {
      resume(first + i);
    }
    meet(first, kLanes);
    const auto& state = states_[first];
    if (state.ended ||
        state.arrival.operation == Exchange::threadgroup_barrier) {
      return;
    }
    if (state.arrival.operation == Exchange::simdgroup_barrier) {
      auto flags = state.arrival.argument;
      clock_.meet_simdgroup(
          simdgroup, flags & kDeviceMemory, flags & kThreadgroupMemory);
    } else if (state.arrival.operation == Exchange::multiply_tiles) {
      std::array<const TileRegisters*, kLanes> lanes;
      for (int i = 0; i < kLanes; ++i) {
        lanes[i] = states_[first + i].arrival.tiles;
      }
      multiply_tiles(lanes);
    } else {
      exchange(first);
    }
  }
}

void Groups::resume(int thread) {
  machine_.stack = fibers_.stack(thread);
  fibers_.resume(thread);
  if (faulty_) {
    throw fault_;
  }
}

// All of `count` threads must be at one place.
void Groups::meet(int first, int count) {
  const auto& one = states_[first];
  for (int i = first + 1; i < first + count; ++i) {
    const auto& other = states_[i];
    bool same = one.ended == other.ended &&
        (one.ended || one.arrival.site == other.arrival.site);
    if (same) {
      continue;
    }
    const auto& waiting = one.ended ? other : one;
    const auto& elsewhere = one.ended ? one : other;
    bool barrier = waiting.arrival.operation == Exchange::threadgroup_barrier ||
        (!elsewhere.ended &&
         elsewhere.arrival.operation == Exchange::threadgroup_barrier);
    fail(
        std::string("divergent ") + (barrier ? "barrier" : "SIMD operation") +
            ": waits at " + where(waiting.arrival) + ", but thread " +
            std::to_string(one.ended ? first : i) +
            (elsewhere.ended ? " has ended"
                             : " is at " + where(elsewhere.arrival)),
        one.ended ? i : first,
        waiting.arrival.line);
  }
}

void Groups::exchange(int first) {
  const auto one = states_[first].arrival;
  std::array<unsigned, kLanes> values;
  for (int i = 0; i < kLanes; ++i) {
    values[i] = states_[first + i].arrival.value;
  }
  bool uniform = one.operation == Exchange::simd_shuffle_xor ||
      one.operation == Exchange::simd_shuffle_down ||
      one.operation == Exchange::simd_broadcast;
  bool reduction = one.operation == Exchange::simd_sum ||
      one.operation == Exchange::simd_max ||
      one.operation == Exchange::simd_min;
  auto result = reduction ? reduced(one.operation, one.type, values) : 0;
  for (int i = 0; i < kLanes; ++i) {
    auto& state = states_[first + i];
    if (reduction) {
      state.result = result;
      continue;
    }
    unsigned argument = state.arrival.argument;
    if (argument >= kLanes || (uniform && argument != one.argument)) {
      fail(
          std::string("SIMD operation: ") + name_of(one.operation) +
              " is given " + std::to_string(argument) +
              (argument >= kLanes
                   ? ", which is no lane"
                   : " where lane 0 gives " + std::to_string(one.argument)),
          first + i,
          one.line);
    }
    unsigned lane = argument;
    if (one.operation == Exchange::simd_shuffle_xor) {
      lane = i ^ argument;
    } else if (one.operation == Exchange::simd_shuffle_down) {
      // The upper lanes keep what they have.
      lane = i + argument < kLanes ? i + argument : i;
    }
    state.result = values[lane];
  }
}

void Groups::fail(const std::string& what, int thread, int line) {
  throw Fault{what, group_, thread, 0, line};
}

// From within a thread, which is given up.
void Groups::stop(Fault fault) {
  fault_ = std::move(fault);
  faulty_ = true;
  for (;;) {
    fibers_.pause();
  }
}

void Groups::run_thread() {
  auto& self = *running;
  int thread = self.fibers_.running();
  Position at{self.group_, self.groups_, static_cast<unsigned>(thread)};
  self.kernel_(self.buffers_, at);
  self.states_[thread].ended = true;
  for (;;) {
    self.fibers_.pause();
  }
}

unsigned Groups::on_exchange(const Arrival& arrival) {
  auto& self = *running;
  auto& state = self.states_[self.fibers_.running()];
  state.arrival = arrival;
  self.fibers_.pause();
  return state.result;
}

void Groups::on_load(Address address, unsigned size, Address site) {
  auto& self = *running;
  int thread = self.fibers_.running();
  if (!self.memory_.load(address, size, thread, self.clock_) &&
      !in_kernel_image(address, site)) {
    self.stop({self.memory_.what(), self.group_, thread, site});
  }
}

void Groups::on_store(Address address, unsigned size, Address site) {
  auto& self = *running;
  int thread = self.fibers_.running();
  if (!self.memory_.store(address, size, thread, self.clock_)) {
    self.stop({self.memory_.what(), self.group_, thread, site});
  }
}

void Groups::on_undefined(const char* what, unsigned line) {
  auto& self = *running;
  self.stop(
      {what, self.group_, self.fibers_.running(), 0, static_cast<int>(line)});
}

} // namespace nightingale::emulator
