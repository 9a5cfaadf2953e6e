#include "nightingale/backends/cpu/blas.h"

#if defined(__APPLE__)
#define ACCELERATE_NEW_LAPACK
#include <Accelerate/Accelerate.h>
#include <Availability.h>
#else
#include <cblas.h>
#endif

#include "nightingale/memory.h"

namespace nightingale::cpu {

namespace {

#if defined(__APPLE__)
constexpr auto sgemm = cblas_sgemm;

void prepare() {
#if defined(__MAC_15_0) // SDKs before that of macOS 15 and iOS 18 lack it
  if (__builtin_available(macOS 15.0, iOS 18.0, *)) {
    BLASSetThreading(BLAS_THREADING_SINGLE_THREADED);
  }
#endif
}
#else
constexpr auto sgemm = scipy_cblas_sgemm;

// What OpenBLAS maps when one more thread than before is inside it. Where it
// cannot, it ends the process.
#if defined(__x86_64__)
constexpr size_t kBuffer = size_t(128) << 20;
#else
constexpr size_t kBuffer = size_t(32) << 20;
#endif

void prepare() {
  // This OpenBLAS is ours alone (NumPy bundles its own), so the setting, which
  // is global to the library, disturbs nobody.
  static const bool done = (scipy_openblas_set_num_threads(1), true);
  (void)done;
  thread_local bool has_buffer = false;
  if (!has_buffer) {
    require_room(2 * kBuffer); // another thread may come first
    has_buffer = true;
  }
}
#endif

} // namespace

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
    int64_t ldc) {
  prepare();
  sgemm(
      CblasRowMajor,
      CblasNoTrans,
      b_layout == Layout::transposed ? CblasTrans : CblasNoTrans,
      m,
      n,
      k,
      1.0f,
      a,
      static_cast<int>(lda),
      b,
      static_cast<int>(ldb),
      0.0f,
      c,
      static_cast<int>(ldc));
}

const char* blas_name() {
#if defined(__APPLE__)
  return "Accelerate";
#else
  return scipy_openblas_get_config();
#endif
}

} // namespace nightingale::cpu
