#include "nightingale/ops/lanes.h"

#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"
#include "nightingale/memory.h"

namespace nightingale::ops {

namespace {

// Bytes of idle buffers that stay while lanes have work: about those of one
// sentence, which the next one takes again. Without a bound they add up, since
// sentences of different lengths need different sizes.
constexpr size_t kKeptIdle = size_t(32) << 20;

} // namespace

class Lanes {
 public:
  static Lanes& instance() {
    // Never destroyed: a lane may still work at process exit.
    static auto* lanes = new Lanes;
    return *lanes;
  }

  // false where there is no thread for it.
  bool add(std::shared_ptr<LaneWork> work) {
    std::lock_guard lock(mutex_);
    int idle = started_ - working_;
    if (idle <= int(waiting_.size()) && started_ < lanes()) {
      start();
    }
    if (started_ == 0) {
      return false;
    }
    waiting_.push_back(std::move(work));
    use_cores();
    begun_.notify_one();
    return true;
  }

  bool work() {
    std::lock_guard lock(mutex_);
    return has_work();
  }

  void wait_for(const LaneWork& work, std::chrono::milliseconds most) {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, most, [&, before = count_] {
      return work.done() || count_ != before;
    });
  }

  void wait_for_all() {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return !has_work(); });
  }

 private:
  bool has_work() const {
    return working_ > 0 || !waiting_.empty();
  }

  // Others may spread their ops while half of the cores are free.
  void use_cores() {
    cpu::spread_tiles(2 * (working_ + std::ssize(waiting_)) < lanes());
  }

  // Where the system gives no thread or memory for another lane, those there
  // are do its work.
  void start() {
    auto started = std::make_shared<std::promise<bool>>();
    try {
      require_room(kMlxRoom);
      std::thread([this, started] { run(*started); }).detach();
      started_ += started->get_future().get();
    } catch (const Error&) {
    } catch (const std::system_error&) {
    }
  }

  void run(std::promise<bool>& started) {
    std::optional<cpu::SideStream> side;
    try {
      side.emplace();
    } catch (const std::exception&) {
      started.set_value(false);
      return;
    }
    started.set_value(true);
    for (;;) {
      auto work = next();
      run(*work, *side);
      end(std::move(work));
    }
  }

  std::shared_ptr<LaneWork> next() {
    std::unique_lock lock(mutex_);
    begun_.wait(lock, [&] { return !waiting_.empty(); });
    auto first = std::ranges::min_element(
        waiting_, {}, [](const auto& each) { return each->due_; });
    auto work = std::move(*first);
    waiting_.erase(first);
    ++working_;
    return work;
  }

  static void run(LaneWork& work, cpu::SideStream& side) {
    try {
      if (!work.dropped()) {
        require_room(kMlxRoom);
        work.body_(side.stream(), work);
        check(side);
      }
    } catch (...) {
      work.failure_ = std::current_exception();
      try {
        check(side); // nothing of this work may come in the next one
      } catch (...) {
      }
    }
    work.body_ = nullptr;
  }

  static void check(cpu::SideStream& side) {
    auto failure = side.take_failure();
    if (!failure.empty()) {
      throw Error(failure);
    }
  }

  void end(std::shared_ptr<LaneWork> work) {
    std::lock_guard lock(mutex_);
    --working_;
    ++count_;
    use_cores();
    cpu::trim(has_work() ? kKeptIdle : 0);
    work->done_.store(true, std::memory_order_release);
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::vector<std::shared_ptr<LaneWork>> waiting_;
  int started_ = 0, working_ = 0;
  uint64_t count_ = 0; // of works that have ended
};

int lanes() {
  return cpu::threads();
}

LaneWork::LaneWork(Due due, Body body) : due_(due), body_(std::move(body)) {}

std::shared_ptr<LaneWork> LaneWork::begin(Due due, Body body) {
  auto work = std::make_shared<LaneWork>(due, std::move(body));
  return Lanes::instance().add(work) ? work : nullptr;
}

void LaneWork::check() const {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
}

void LaneWork::wait(std::chrono::milliseconds most) const {
  Lanes::instance().wait_for(*this, most);
}

bool lanes_work() {
  return Lanes::instance().work();
}

void wait_for_lanes() {
  Lanes::instance().wait_for_all();
}

} // namespace nightingale::ops
