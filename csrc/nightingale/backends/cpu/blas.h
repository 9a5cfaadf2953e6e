#pragma once

#include <cstdint>

namespace nightingale::cpu {

enum class Layout { normal, transposed };

// c[m, n] = a[m, k] · b, row-major, where b is [k, n], or [n, k] when
// transposed. Runs in the calling thread alone: tiles are what is
// spread over threads, so that no result depends on how many there are.
void gemm(
    int m,
    int n,
    int k,
    const float* a,
    int64_t lda,
    const float* b,
    int64_t ldb,
    Layout b_layout,
    float* c,
    int64_t ldc);

// Name and version of the BLAS in use.
const char* blas_name();

} // namespace nightingale::cpu
