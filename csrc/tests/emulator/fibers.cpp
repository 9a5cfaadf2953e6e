#include "emulator/fibers.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

// Saves what a call must keep and the stack pointer in *save, then does the
// reverse from `load`.
extern "C" void switch_stack(void** save, void* load) asm(
    "nightingale_switch_stack");

#if defined(__x86_64__)
asm(R"(
.text
.globl nightingale_switch_stack
nightingale_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl nightingale_switch_stack
.p2align 2
nightingale_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
)");
#else
#error "The emulator has no stack switch for this processor."
#endif

namespace nightingale::emulator {

namespace {

#if defined(__x86_64__)
constexpr int kSavedWords = 8; // six registers, where to go, no caller
constexpr int kEntryWord = 6;
#else
constexpr int kSavedWords = 20;
constexpr int kEntryWord = 11; // x30
#endif

// Stacks at equal distances would share few cache lines.
Address colour(int fiber) {
  return fiber % 61 * 192;
}

} // namespace

Fibers::Fibers(char* stacks) : stacks_(stacks), guard_(sysconf(_SC_PAGESIZE)) {
  // What no hook sees, such as a call, must not run into another stack.
  for (int i = 0; i < kMost; ++i) {
    mprotect(stacks_ + i * kStackBytes, guard_, PROT_NONE);
  }
}

Range Fibers::stack(int fiber) const {
  auto begin = reinterpret_cast<Address>(stacks_) + fiber * kStackBytes;
  return {begin + guard_, begin + kStackBytes};
}

void Fibers::start(int fiber, void (*run)()) {
  auto top = reinterpret_cast<uintptr_t>(stacks_) + (fiber + 1) * kStackBytes -
      64 - colour(fiber);
  auto* words = reinterpret_cast<uint64_t*>(top) - kSavedWords;
  std::memset(words, 0, kSavedWords * sizeof(uint64_t));
  words[kEntryWord] = reinterpret_cast<uintptr_t>(run);
  fibers_[fiber] = words;
}

void Fibers::resume(int fiber) {
  running_ = fiber;
  switch_stack(&caller_, fibers_[fiber]);
}

void Fibers::pause() {
  switch_stack(&fibers_[running_], caller_);
}

} // namespace nightingale::emulator
