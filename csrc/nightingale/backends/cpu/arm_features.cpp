#include "nightingale/backends/cpu/arm_features.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

// The headers of older systems lack them.
#ifndef HWCAP2_I8MM
#define HWCAP2_I8MM (1 << 13)
#endif
#ifndef HWCAP2_BF16
#define HWCAP2_BF16 (1 << 14)
#endif
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

namespace nightingale::cpu {

#if defined(__aarch64__) && defined(__linux__)

bool has_dot_products() {
  return getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
}

bool has_byte_matrix_products() {
  return getauxval(AT_HWCAP2) & HWCAP2_I8MM;
}

bool has_bf16_matrix_products() {
  return getauxval(AT_HWCAP2) & HWCAP2_BF16;
}

#elif defined(__aarch64__) && defined(__APPLE__)

namespace {

// False also where the system is too old to know the name.
bool system_has(const char* feature) {
  int value = 0;
  size_t size = sizeof(value);
  return sysctlbyname(feature, &value, &size, nullptr, 0) == 0 && value;
}

} // namespace

bool has_dot_products() {
  return true; // every Apple processor with macOS has them
}

bool has_byte_matrix_products() {
  return system_has("hw.optional.arm.FEAT_I8MM");
}

// Accelerate has matrix units there, and bfmmla has not been measured beside
// them: no products leave it for bfmmla.
bool has_bf16_matrix_products() {
  return false;
}

#else

bool has_dot_products() {
  return false;
}

bool has_byte_matrix_products() {
  return false;
}

bool has_bf16_matrix_products() {
  return false;
}

#endif

} // namespace nightingale::cpu
