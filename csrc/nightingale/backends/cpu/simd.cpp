#include "nightingale/backends/cpu/simd.h"

#include <vector>

#include "nightingale/backends/cpu/arm_features.h"

namespace nightingale::cpu {

extern const Simd simd_plain;
#if defined(__x86_64__)
extern const Simd simd_avx2;
extern const Simd simd_avx512;
extern const Simd simd_avx512bf16;
extern const QuantizedLoops quantized_loops_vnni;
#elif defined(__aarch64__)
extern const Simd simd_neon;
extern const QuantizedLoops quantized_loops_dot;
extern const QuantizedLoops quantized_loops_i8mm;
#endif

namespace {

// A table with other quantized loops.
[[maybe_unused]] Simd with_quantized(
    const Simd& table,
    const char* name,
    const QuantizedLoops& quantized) {
  Simd all = table;
  all.name = name;
  all.quantized = quantized;
  return all;
}

#if defined(__x86_64__)
const Simd& simd_vnni() {
  static const Simd table =
      with_quantized(simd_avx512, "avx512vnni", quantized_loops_vnni);
  return table;
}

const Simd& simd_bf16() {
  static const Simd table =
      with_quantized(simd_avx512bf16, "avx512bf16", quantized_loops_vnni);
  return table;
}
#elif defined(__aarch64__)
const Simd& simd_dot() {
  static const Simd table =
      with_quantized(simd_neon, "neondot", quantized_loops_dot);
  return table;
}

const Simd& simd_i8mm() {
  static const Simd table =
      with_quantized(simd_neon, "neoni8mm", quantized_loops_i8mm);
  return table;
}
#endif

std::vector<const Simd*> available() {
  std::vector<const Simd*> tables;
#if defined(__x86_64__)
  __builtin_cpu_init();
  // f16c came before AVX2 on every processor; Clang 14 cannot ask for it.
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") &&
      __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    if (__builtin_cpu_supports("avx512vnni")) {
      if (__builtin_cpu_supports("avx512bf16")) {
        tables.push_back(&simd_bf16());
      }
      tables.push_back(&simd_vnni());
    }
    tables.push_back(&simd_avx512);
  }
  if (avx2) {
    tables.push_back(&simd_avx2);
  }
#elif defined(__aarch64__)
  if (has_byte_matrix_products()) {
    tables.push_back(&simd_i8mm());
  }
  if (has_dot_products()) {
    tables.push_back(&simd_dot());
  }
  tables.push_back(&simd_neon);
#endif
  tables.push_back(&simd_plain);
  return tables;
}

const std::vector<const Simd*>& tables() {
  static const auto* list = new std::vector<const Simd*>(available());
  return *list;
}

} // namespace

const Simd& simd() {
  static const Simd& best = *tables().front();
  return best;
}

int simd_count() {
  return static_cast<int>(tables().size());
}

const Simd& simd_at(int index) {
  return *tables().at(index);
}

} // namespace nightingale::cpu
