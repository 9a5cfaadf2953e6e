#include "core_call.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "bindings.h"
#include "nightingale/error.h"
#include "nightingale/memory.h"
#include "nightingale/ops/lanes.h"
#include "nightingale/ops/machine.h"

namespace ops = nightingale::ops;

namespace {

struct Process {
  std::mutex mutex;
  std::condition_variable changed;
  int running = 0; // calls
  bool has_threads = false; // of MLX and of our ops, since the first call
  bool forked = false; // from a process that had
  bool ending = false;
  std::thread::id ender;
};

Process& process() {
  // Never destroyed: threads wait here at process exit.
  static auto* instance = new Process;
  return *instance;
}

// In the child of a fork, where only the thread that forked exists.
void after_fork() {
  auto& old = process();
  bool forked = old.forked || old.has_threads;
  new (&old) Process; // whoever held the mutex is gone
  old.forked = forked;
}

void check_fork() {
  if (process().forked) {
    throw nightingale::Error(
        "this process was forked from one in which Nightingale had loaded a "
        "model, and its threads were not copied: start processes with the "
        "method 'spawn' (multiprocessing.set_start_method), or fork before "
        "anything is loaded");
  }
}

[[noreturn]] void wait_for_the_end() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::hours(1));
  }
}

// Called by Python before the interpreter ends.
void end_calls() {
  auto& p = process();
  {
    std::lock_guard<std::mutex> lock(p.mutex);
    p.ending = true;
    p.ender = std::this_thread::get_id();
  }
  ops::stop_ops();
  if (nb::cast<int>(nb::module_::import_("threading").attr("active_count")()) >
      1) {
    nb::set_leak_warnings(false); // their frames hold objects to the end
  }
  nb::gil_scoped_release release;
  std::unique_lock<std::mutex> lock(p.mutex);
  p.changed.wait(lock, [&] { return p.running == 0; });
  if (!p.forked) { // else their threads are not in this process
    ops::wait_for_lanes();
  }
}

// Failures of the system as Errors; Python would otherwise have several types.
void translate(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const std::bad_alloc&) {
    throw nightingale::Error("out of memory");
  } catch (const std::system_error& error) {
    throw nightingale::Error(
        std::string("the system refused a thread: ") + error.what());
  }
}

} // namespace

CoreCall::CoreCall() : failed_before_(ops::failed_ops()) {
  check_fork();
  nightingale::require_room(nightingale::kMlxRoom);
  auto& p = process();
  state_ = PyEval_SaveThread();
  bool ending, ender;
  {
    std::lock_guard<std::mutex> lock(p.mutex);
    ending = p.ending;
    ender = p.ender == std::this_thread::get_id();
    if (!ending) {
      ++p.running;
      p.has_threads = true;
    }
  }
  if (ending && !ender) {
    wait_for_the_end();
  }
  if (ending) {
    PyEval_RestoreThread(state_);
    throw nightingale::Error("the interpreter is ending");
  }
}

// Counted until it has the GIL again: the interpreter waits for it so long.
CoreCall::~CoreCall() {
  auto& p = process();
  bool ending;
  {
    std::lock_guard<std::mutex> lock(p.mutex);
    if (p.ending) {
      --p.running;
      p.changed.notify_all();
    }
    ending = p.ending;
  }
  if (ending) {
    wait_for_the_end();
  }
  PyEval_RestoreThread(state_);
  std::lock_guard<std::mutex> lock(p.mutex);
  --p.running;
  p.changed.notify_all();
}

void CoreCall::check_ops() const {
  if (ops::failed_ops() != failed_before_) {
    throw nightingale::Error(ops::last_failure());
  }
}

void bind_core_call(nb::module_& m) {
  pthread_atfork(nullptr, nullptr, &after_fork);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&end_calls));
  nb::register_exception_translator(&translate);
  m.def(
      "check_fork",
      &check_fork,
      "Raises an Error in a process that was forked from one with threads of "
      "the core.");
}
