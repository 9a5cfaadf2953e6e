// What every kernel in the emulator is linked with: the functions that clang
// calls before every load and store (-fsanitize-coverage) and where the kernel
// does what C++ leaves undefined (-fsanitize), and the library functions behind
// half-precision numbers. Compiled once, as it takes a third of a kernel's
// time.

#include "msl.h"

namespace msl {

// For what the compiler adds to place variables when the kernel is loaded: it
// may touch anything.
Machine loading{{0, ~0ul}};

} // namespace msl

extern "C" {
msl::Machine* emulator_machine = &msl::loading;
unsigned long emulator_threadgroup_bytes;
}

namespace msl {

// Not optimised: the compiler would find that it need not be convergent.
MSL_HOOK __attribute__((optnone)) unsigned
exchange(Exchange operation, Number type, uint value, uint argument, int line) {
  auto site = (Address)__builtin_return_address(0);
  return emulator_machine->exchange(
      {operation, type, value, argument, site, line});
}

MSL_HOOK __attribute__((optnone)) void exchange_tiles(
    const nightingale::emulator::TileRegisters& tiles,
    int line) {
  auto site = (Address)__builtin_return_address(0);
  emulator_machine->exchange(
      {Exchange::multiply_tiles, Number::none, 0, 0, site, line, &tiles});
}

} // namespace msl

extern "C" {

#define MSL_SITE (msl::Address) __builtin_return_address(0)
#define MSL_ACCESS(size)                                         \
  MSL_HOOK void __sanitizer_cov_load##size(void* p) {            \
    if (!emulator_machine->may_read((msl::Address)p, size)) {    \
      emulator_machine->load((msl::Address)p, size, MSL_SITE);   \
    }                                                            \
  }                                                              \
  MSL_HOOK void __sanitizer_cov_store##size(void* p) {           \
    if (!emulator_machine->stack.holds((msl::Address)p, size)) { \
      emulator_machine->store((msl::Address)p, size, MSL_SITE);  \
    }                                                            \
  }
MSL_ACCESS(1)
MSL_ACCESS(2)
MSL_ACCESS(4)
MSL_ACCESS(8)
MSL_ACCESS(16)
#undef MSL_ACCESS

MSL_HOOK void __sanitizer_cov_trace_pc() {}

struct UndefinedAt {
  const char* file;
  unsigned line, column;
};

#define MSL_UNDEFINED(check, what)                        \
  MSL_HOOK void __ubsan_handle_##check(UndefinedAt* at) { \
    emulator_machine->undefined(what, at->line);          \
  }
MSL_UNDEFINED(out_of_bounds, "out of bounds: an index is beyond its array")
MSL_UNDEFINED(type_mismatch_v1, "misaligned: an address does not fit its type")
MSL_UNDEFINED(shift_out_of_bounds, "undefined: a shift by too many bits")
MSL_UNDEFINED(divrem_overflow, "undefined: division by zero")
MSL_UNDEFINED(add_overflow, "undefined: a signed sum overflows")
MSL_UNDEFINED(sub_overflow, "undefined: a signed difference overflows")
MSL_UNDEFINED(mul_overflow, "undefined: a signed product overflows")
MSL_UNDEFINED(negate_overflow, "undefined: a signed negation overflows")
MSL_UNDEFINED(float_cast_overflow, "undefined: a float does not fit an integer")
MSL_UNDEFINED(load_invalid_value, "undefined: a bool is neither 0 nor 1")
#undef MSL_UNDEFINED

// Rounded to the nearest, ties to even.
MSL_HOOK __bf16 __truncsfbf2(float v) {
  auto bits = __builtin_bit_cast(uint, v);
  if (v != v) {
    bits |= 1u << 22;
  } else {
    bits += 0x7fffu + ((bits >> 16) & 1u);
  }
  return __builtin_bit_cast(__bf16, (ushort)(bits >> 16));
}

MSL_HOOK _Float16 __truncsfhf2(float v) {
  auto bits = __builtin_bit_cast(uint, v);
  uint sign = (bits >> 16) & 0x8000u;
  uint size = bits & 0x7fffffffu;
  uint half;
  if (size > 0x7f800000u) {
    half = 0x7e00u;
  } else if (size >= 0x47800000u) { // 65536
    half = 0x7c00u;
  } else if (size >= 0x38800000u) { // 2^-14, the smallest normal half
    half = (size - 0x38000000u + 0xfffu + ((size >> 13) & 1u)) >> 13;
  } else if (size >= 0x33000000u) { // 2^-25, half of the smallest half
    uint shift = 126u - (size >> 23);
    uint mantissa = (size & 0x7fffffu) | 0x800000u;
    uint odd = (mantissa >> shift) & 1u;
    half = (mantissa + (1u << (shift - 1)) - 1u + odd) >> shift;
  } else {
    half = 0;
  }
  return __builtin_bit_cast(_Float16, (ushort)(sign | half));
}

MSL_HOOK float __extendhfsf2(_Float16 v) {
  auto bits = __builtin_bit_cast(ushort, v);
  uint sign = (bits & 0x8000u) << 16;
  uint size = bits & 0x7fffu;
  if (size >= 0x7c00u) {
    return __builtin_bit_cast(
        float, sign | 0x7f800000u | (size & 0x3ffu) << 13);
  }
  // A half's bits stand for v * 2^-112 in a float.
  float scaled = __builtin_bit_cast(float, size << 13) * 0x1p112f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint, scaled));
}

} // extern "C"
