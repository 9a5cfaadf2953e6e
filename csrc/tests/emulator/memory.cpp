#include "emulator/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>

#include "emulator/fibers.h"

namespace nightingale::emulator {

namespace {

constexpr size_t kSlotBytes = size_t{1} << kSlotBits;
constexpr size_t kBegin = kSlotBytes / 4; // of the buffer in its slot
constexpr size_t kMostBytes = kSlotBytes / 2;
constexpr size_t kPage = 65536; // a multiple of every page size in use
constexpr int kStackSlot = 0;
constexpr int kThreadgroupSlot = 1;
constexpr int kFirstBuffer = 2;

size_t whole_pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

char* map(size_t bytes, int protection) {
  int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* p = mmap(nullptr, bytes, protection, flags, -1, 0);
  if (p == MAP_FAILED) {
    throw std::runtime_error(
        "the emulator found no " + std::to_string(bytes) +
        " bytes of address space");
  }
  return static_cast<char*>(p);
}

bool same_simdgroup(int a, int b) {
  return a / 32 == b / 32;
}

std::string numbered(const char* what, size_t n) {
  return what + (" " + std::to_string(n));
}

} // namespace

void Clock::begin_launch() {
  launch = ++now;
}

void Clock::begin_group() {
  group = ++now;
  meet(true, true);
}

void Clock::meet(bool device_memory, bool threadgroup_memory) {
  ++now;
  for (auto [meets, ordered] :
       {std::pair{device_memory, &device},
        std::pair{threadgroup_memory, &threadgroup}}) {
    if (meets) {
      ordered->group = now;
      ordered->simdgroups.fill(now);
    }
  }
}

void Clock::meet_simdgroup(
    int simdgroup,
    bool device_memory,
    bool threadgroup_memory) {
  ++now;
  if (device_memory) {
    device.simdgroups[simdgroup] = now;
  }
  if (threadgroup_memory) {
    threadgroup.simdgroups[simdgroup] = now;
  }
}

Memory::Memory()
    : base_(map(kSlots * kSlotBytes, PROT_NONE)), regions_(kSlots) {
  regions_[kStackSlot].use = Use::stack;
  settle(kStackSlot, Fibers::kMost * Fibers::kStackBytes, 1, 0);
  regions_[kThreadgroupSlot].use = Use::threadgroup;
}

Memory::~Memory() {
  munmap(base_, kSlots * kSlotBytes);
  for (const auto& region : regions_) {
    if (region.cells != nullptr) {
      munmap(region.cells, region.cells_reserved);
    }
  }
}

char* Memory::stacks() const {
  return reinterpret_cast<char*>(regions_[kStackSlot].begin);
}

char* Memory::threadgroup_memory() const {
  return reinterpret_cast<char*>(regions_[kThreadgroupSlot].begin);
}

void Memory::settle(int slot, size_t bytes, size_t item_bytes, size_t offset) {
  auto& region = regions_[slot];
  if (bytes > kMostBytes) {
    throw std::runtime_error(
        region.name + " has " + std::to_string(bytes) +
        " bytes; the emulator takes " + std::to_string(kMostBytes));
  }
  char* begin = base_ + slot * kSlotBytes + kBegin;
  size_t needed = whole_pages(offset + bytes);
  if (needed > region.committed) {
    if (mprotect(begin, needed, PROT_READ | PROT_WRITE) != 0) {
      throw std::runtime_error(
          "the emulator found no " + std::to_string(needed) +
          " bytes of memory");
    }
    region.committed = needed;
  }
  region.begin = reinterpret_cast<Address>(begin) + offset;
  region.end = region.begin + bytes;
  region.item_bytes = item_bytes;
  region.cell_bytes = std::min<size_t>(item_bytes, 4);
}

// Address space for cells of single bytes; only what is used becomes memory.
void Memory::reserve_cells(Region& region) {
  size_t needed = whole_pages((region.end - region.begin) * sizeof(Cell));
  if (needed <= region.cells_reserved) {
    return;
  }
  if (region.cells != nullptr) {
    munmap(region.cells, region.cells_reserved);
  }
  region.cells = reinterpret_cast<Cell*>(map(needed, PROT_READ | PROT_WRITE));
  region.cells_reserved = needed;
}

void Memory::begin_launch(size_t threadgroup_bytes) {
  settle(kThreadgroupSlot, threadgroup_bytes, 4, 0);
  reserve_cells(regions_[kThreadgroupSlot]);
  used_ = kFirstBuffer;
}

char* Memory::add(
    Use use,
    const std::string& name,
    size_t bytes,
    size_t item_bytes,
    size_t offset) {
  if (used_ == kSlots) {
    throw std::runtime_error(
        "the emulator takes " + std::to_string(kSlots - kFirstBuffer) +
        " buffers");
  }
  auto& region = regions_[used_];
  region.use = use;
  region.name = name;
  settle(used_, bytes, item_bytes, offset % kPage);
  ++used_;
  if (use != Use::input) {
    reserve_cells(region);
  }
  return reinterpret_cast<char*>(region.begin);
}

Memory::Region* Memory::region_at(Address address) {
  auto slot = (address - reinterpret_cast<Address>(base_)) >> kSlotBits;
  return slot < static_cast<Address>(used_) ? &regions_[slot] : nullptr;
}

void Memory::describe(Machine& machine) const {
  machine.slots = reinterpret_cast<Address>(base_);
  machine.threadgroup_memory = threadgroup_memory();
  for (int slot = 0; slot < kSlots; ++slot) {
    const auto& region = regions_[slot];
    bool input =
        slot >= kFirstBuffer && slot < used_ && region.use == Use::input;
    machine.inputs[slot] =
        input ? Range{region.begin, region.end} : Range{0, 0};
  }
}

bool Memory::fault(std::string what) {
  what_ = std::move(what);
  return false;
}

std::string Memory::location_of(const Region& region, Address address) const {
  auto offset = static_cast<long>(address - region.begin);
  switch (region.use) {
    case Use::stack:
      return "memory of thread " +
          std::to_string(offset / static_cast<long>(Fibers::kStackBytes));
    case Use::threadgroup:
      return "byte " + std::to_string(offset) + " of threadgroup memory";
    default:
      return "element " +
          std::to_string(offset / static_cast<long>(region.item_bytes)) +
          " of " + region.name;
  }
}

// The region of an access that is within its bounds.
Memory::Region*
Memory::checked(Address address, unsigned size, const char* verb) {
  auto* region = region_at(address);
  if (region == nullptr) {
    fault(
        std::string("out of bounds: ") + verb + " " + std::to_string(size) +
        " bytes outside of every buffer");
    return nullptr;
  }
  bool inside = address >= region->begin && address + size <= region->end;
  if (region->use == Use::stack) {
    fault(
        std::string("out of bounds: ") + verb + " " +
        (inside ? location_of(*region, address) : "beyond its stack"));
    return nullptr;
  }
  if (!inside) {
    auto bytes = region->end - region->begin;
    fault(
        std::string("out of bounds: ") + verb + " " +
        location_of(*region, address) + ", which has " +
        (region->use == Use::threadgroup
             ? std::to_string(bytes) + " bytes"
             : std::to_string(bytes / region->item_bytes) + " elements"));
    return nullptr;
  }
  return region;
}

void Memory::refine(Region& region, size_t cell_bytes) {
  size_t times = region.cell_bytes / cell_bytes;
  for (size_t i = region.cell_count(); i-- > 0;) {
    std::fill_n(region.cells + i * times, times, region.cells[i]);
  }
  region.cell_bytes = cell_bytes;
}

bool Memory::race(
    const Region& region,
    Address address,
    const char* verb,
    const char* before,
    Moment other,
    const Clock& clock) {
  bool in_group = other >= moment(clock.group, 0);
  return fault(
      std::string("race: ") + verb + " " + location_of(region, address) +
      ", which " +
      (in_group ? numbered("thread", thread_of(other)) : "another group") +
      " " + before + (in_group ? " with no barrier between" : ""));
}

namespace {

// Whether nothing orders what happened at `other` before `thread`. `first`:
// what is older belongs to another launch or group and does not count.
bool unordered(
    Moment other,
    int thread,
    uint64_t first,
    const Ordered& ordered,
    const Clock& clock) {
  if (other < moment(first, 0)) {
    return false;
  }
  if (other < moment(clock.group, 0)) {
    return true;
  }
  int before = thread_of(other);
  if (before == thread) {
    return false;
  }
  auto since = same_simdgroup(before, thread) ? ordered.simdgroups[thread / 32]
                                              : ordered.group;
  return other >= moment(since, 0);
}

bool same_thread(Moment m, int thread, const Clock& clock) {
  return m >= moment(clock.group, 0) && thread_of(m) == thread;
}

void note_read(Cell& cell, int thread, const Clock& clock) {
  if (!same_thread(cell.read, thread, clock)) {
    if (cell.read < moment(clock.group, 0) ||
        !same_simdgroup(thread_of(cell.read), thread)) {
      cell.read_by_other_simdgroup = cell.read;
    }
    cell.read_by_other = cell.read;
  }
  cell.read = moment(clock.now, thread);
}

} // namespace

Cell* Memory::cells_of(Region& region, Address address, unsigned size) {
  auto offset = address - region.begin;
  while (size < region.cell_bytes || offset % region.cell_bytes != 0) {
    refine(region, region.cell_bytes / 2);
  }
  return region.cells + offset / region.cell_bytes;
}

bool Memory::load(
    Address address,
    unsigned size,
    int thread,
    const Clock& clock) {
  auto* region = checked(address, size, "reads");
  if (region == nullptr) {
    return false;
  }
  if (region->use == Use::input) {
    return true;
  }
  bool shared = region->use == Use::threadgroup;
  const auto& ordered = shared ? clock.threadgroup : clock.device;
  auto first = shared ? clock.group : clock.launch;
  auto* cell = cells_of(*region, address, size);
  for (auto at = address; at < address + size;
       at += region->cell_bytes, ++cell) {
    if (region->use != Use::state && cell->written < moment(first, 0)) {
      return fault(
          "unwritten: reads " + location_of(*region, at) +
          ", which nobody has written");
    }
    if (unordered(cell->written, thread, first, ordered, clock)) {
      return race(*region, at, "reads", "wrote", cell->written, clock);
    }
    note_read(*cell, thread, clock);
  }
  return true;
}

bool Memory::store(
    Address address,
    unsigned size,
    int thread,
    const Clock& clock) {
  auto* region = checked(address, size, "writes");
  if (region == nullptr) {
    return false;
  }
  if (region->use == Use::input) {
    return fault(
        "read-only: writes " + location_of(*region, address) +
        ", which is an input");
  }
  bool shared = region->use == Use::threadgroup;
  const auto& ordered = shared ? clock.threadgroup : clock.device;
  auto first = shared ? clock.group : clock.launch;
  auto* cell = cells_of(*region, address, size);
  for (auto at = address; at < address + size;
       at += region->cell_bytes, ++cell) {
    if (unordered(cell->written, thread, first, ordered, clock)) {
      return race(*region, at, "writes", "wrote", cell->written, clock);
    }
    for (auto read :
         {cell->read, cell->read_by_other, cell->read_by_other_simdgroup}) {
      if (unordered(read, thread, first, ordered, clock)) {
        return race(*region, at, "writes", "read", read, clock);
      }
    }
    cell->written = moment(clock.now, thread);
  }
  return true;
}

bool Memory::all_written(const Clock& clock) {
  for (int slot = kFirstBuffer; slot < used_; ++slot) {
    const auto& region = regions_[slot];
    if (region.use != Use::output) {
      continue;
    }
    auto* end = region.cells + region.cell_count();
    auto* cell = std::find_if(region.cells, end, [&](const Cell& c) {
      return c.written < moment(clock.launch, 0);
    });
    if (cell != end) {
      auto at = region.begin + (cell - region.cells) * region.cell_bytes;
      return fault("unwritten: nobody writes " + location_of(region, at));
    }
  }
  return true;
}

} // namespace nightingale::emulator
