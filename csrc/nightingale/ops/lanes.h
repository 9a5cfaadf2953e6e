#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>

#include "nightingale/ops/backend.h"

// Threads that compute on the CPU beside the caller, each on a stream of its
// own whose ops it does not spread over others. Where there is enough to do,
// they do more than one thread that spreads every op, since none of them
// waits for another's share of it. While they keep half of the cores busy, ops
// of other streams are not spread either. Results are those of any other
// thread.

namespace nightingale::ops {

// How many there are: as many as threads that share an op elsewhere. They are
// started when they are needed and last as long as the process.
int lanes();

// Work that one of them does.
class LaneWork {
 public:
  // What it does is all on the stream that it is given. It may find out by
  // `dropped` that nobody waits for it any more.
  using Body = std::function<void(const mx::Stream&, const LaneWork&)>;
  using Due = std::chrono::steady_clock::time_point;

  // Of what waits for a lane, that which is due first begins first. None where
  // the system gives no thread.
  static std::shared_ptr<LaneWork> begin(Due due, Body body);

  LaneWork(Due due, Body body);

  bool done() const {
    return done_.load(std::memory_order_acquire);
  }

  // Waits until it or another work is done, or until so much time has passed.
  void wait(std::chrono::milliseconds most) const;

  // Once it is done: throws what it threw, or an Error where an op of it has
  // failed.
  void check() const;

  // It need not be done. Nobody may call `check` any more.
  void drop() {
    dropped_.store(true, std::memory_order_relaxed);
  }
  bool dropped() const {
    return dropped_.load(std::memory_order_relaxed);
  }

 private:
  friend class Lanes;

  Due due_;
  Body body_;
  std::exception_ptr failure_;
  std::atomic<bool> done_{false}, dropped_{false};
};

// Whether they have work.
bool lanes_work();

// Waits until they have no work: at the end of the process.
void wait_for_lanes();

} // namespace nightingale::ops
