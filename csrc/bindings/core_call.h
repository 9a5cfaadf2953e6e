#pragma once

#include <Python.h>

#include <cstdint>

// Work of the core while other Python threads run: holds the GIL released.
//
// A thread that wants the GIL back while the interpreter ends is ended by
// Python inside our frames, and what it works with is destroyed under it; both
// crash the process. So the interpreter waits for such work before it ends (see
// bind_core_call), which is told to stop, and its threads wait for the end of
// the process here.
class CoreCall {
 public:
  // Throws an Error in a process that was forked from one with threads of ours,
  // and while the interpreter ends.
  CoreCall();
  ~CoreCall();
  CoreCall(const CoreCall&) = delete;
  CoreCall& operator=(const CoreCall&) = delete;

  // Throws an Error where CPU ops have failed since the call began.
  void check_ops() const;

 private:
  PyThreadState* state_;
  uint64_t failed_before_;
};
