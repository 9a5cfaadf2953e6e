// How a kernel that runs in the emulator reaches it: memory of the threadgroup,
// and functions of hooks.inl.
#pragma clang system_header

#define MSL_HOOK __attribute__((noinline, no_sanitize("coverage", "undefined")))

#define MSL_EXPORT __attribute__((visibility("default")))

namespace msl {

using nightingale::emulator::Address;
using nightingale::emulator::Machine;

} // namespace msl

extern "C" {
MSL_EXPORT extern msl::Machine* emulator_machine;
// Of threadgroup memory that the kernel declares.
MSL_EXPORT extern unsigned long emulator_threadgroup_bytes;
}

namespace msl {

// Memory that the group shares, in the order in which the kernel declares it;
// the places are given out when the kernel is loaded.
inline unsigned long place(unsigned long size, unsigned long align) {
  auto begin = (emulator_threadgroup_bytes + align - 1) / align * align;
  emulator_threadgroup_bytes = begin + size;
  return begin;
}
template <typename Storage, int site>
struct Place {
  static const unsigned long begin;
};
template <typename Storage, int site>
const unsigned long Place<Storage, site>::begin =
    place(sizeof(Storage), alignof(Storage));

// A pointer, because the compiler may read through a reference early.
template <typename Storage, int site>
MSL_HOOK Storage* storage() {
  return (Storage*)(emulator_machine->threadgroup_memory +
                    Place<Storage, site>::begin);
}

} // namespace msl
