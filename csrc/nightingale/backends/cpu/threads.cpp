#include "nightingale/backends/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace nightingale::cpu {

namespace {

using Clock = std::chrono::steady_clock;

// Ops follow each other within microseconds during decoding, and waking a
// sleeping thread costs about 50 µs: workers spin this long before they sleep.
// By the clock, which is read once in so many spins: a pause takes tens of
// nanoseconds on x86, but yield about a cycle on ARM.
constexpr std::chrono::microseconds kWorkerSpin{150};
constexpr int kSpinsPerLook = 64;
// The caller, once no tile is left to take, gives way after this many.
constexpr int kCallerSpins = 200;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Which tile of which job is next, in one word: a worker that comes late can
// then never take a tile of a job it has not seen.
struct Ticket {
  static constexpr int kBits = 24; // of each of the two tile counts
  static constexpr uint64_t kOneTile = 1u << kBits;
  static constexpr uint64_t kMostTiles = kOneTile - 1;

  static uint64_t make(uint64_t job, uint64_t tiles) {
    return job << (2 * kBits) | tiles;
  }
  static uint64_t tiles(uint64_t ticket) {
    return ticket & kMostTiles;
  }
  static uint64_t next(uint64_t ticket) {
    return (ticket >> kBits) & kMostTiles;
  }
};

// Set on a thread while it runs tiles: what is nested in them runs inline.
thread_local bool inside_tile = false;

std::atomic<bool> tiles_are_spread{true};

struct InsideTile {
  InsideTile() {
    inside_tile = true;
  }
  ~InsideTile() {
    inside_tile = false;
  }
};

// Whether a thread would leave some memory to the others. Where its stack takes
// the last of it, the C library ends the process as soon as a thread asks for
// data of its own.
bool has_room() {
  constexpr size_t kRoom = size_t(32) << 20;
  void* room = mmap(nullptr, kRoom, PROT_NONE, MAP_PRIVATE | MAP_ANON, -1, 0);
  if (room == MAP_FAILED) {
    return false;
  }
  munmap(room, kRoom);
  return true;
}

class ThreadPool {
 public:
  explicit ThreadPool(int workers) {
    workers_.reserve(workers);
    for (int i = 0; i < workers; ++i) {
      if (!start(i)) {
        // The system gives no more. Half of those that started do the work; the
        // others are given back with their stacks, for the models need room and
        // other parts of this process threads.
        end_from(workers_.size() / 2);
        break;
      }
    }
  }

  ~ThreadPool() {
    end_from(0);
  }

  int workers() const {
    return static_cast<int>(workers_.size());
  }

  void run(int tiles, detail::Body body, void* context) {
    body_ = body;
    context_ = context;
    done_.store(0, std::memory_order_relaxed);
    uint32_t job = job_.load(std::memory_order_relaxed) + 1;
    ticket_.store(Ticket::make(job, tiles), std::memory_order_release);
    job_.store(job, std::memory_order_release);
    job_.notify_all();
    take_tiles();
    // Waits for tiles, not for workers: one that the system has not scheduled
    // holds nothing up.
    for (int spins = 0; done_.load(std::memory_order_acquire) != tiles;) {
      if (++spins < kCallerSpins) {
        relax();
      } else {
        std::this_thread::yield();
      }
    }
    if (failed_.load(std::memory_order_relaxed)) {
      failed_.store(false, std::memory_order_relaxed);
      std::rethrow_exception(std::exchange(failure_, nullptr));
    }
  }

 private:
  bool start(int worker) {
    if (!has_room()) {
      return false;
    }
    try {
      workers_.emplace_back([this, worker] { work(worker); });
    } catch (const std::system_error&) {
      return false;
    }
    return true;
  }

  // Ends the workers from this one on.
  void end_from(size_t first) {
    kept_.store(static_cast<int>(first));
    job_.fetch_add(1);
    job_.notify_all();
    for (size_t i = first; i < workers_.size(); ++i) {
      workers_[i].join();
    }
    workers_.resize(first);
  }

  // Takes runs of tiles, long ones while there are many left: neighbours in
  // memory are then read in one go, and the threads still end together.
  void take_tiles() {
    uint64_t ticket = ticket_.load(std::memory_order_acquire);
    for (;;) {
      uint64_t first = Ticket::next(ticket), tiles = Ticket::tiles(ticket);
      if (first >= tiles) {
        return;
      }
      uint64_t shares = 2 * (workers_.size() + 1);
      uint64_t run = std::max<uint64_t>(1, (tiles - first) / shares);
      if (!ticket_.compare_exchange_weak(
              ticket,
              ticket + run * Ticket::kOneTile,
              std::memory_order_acquire)) {
        continue;
      }
      run_tiles(static_cast<int>(first), static_cast<int>(first + run));
      done_.fetch_add(static_cast<int>(run), std::memory_order_release);
      ticket = ticket_.load(std::memory_order_acquire);
    }
  }

  // Keeps the first exception of a job for its caller.
  void run_tiles(int begin, int end) {
    try {
      for (int tile = begin; tile < end; ++tile) {
        body_(context_, tile);
      }
    } catch (...) {
      if (!failed_.exchange(true)) {
        failure_ = std::current_exception();
      }
    }
  }

  // Whether a job after `seen` is there before it pays to sleep.
  bool comes_soon(uint32_t seen) const {
    auto end = Clock::now() + kWorkerSpin;
    do {
      for (int i = 0; i < kSpinsPerLook; ++i) {
        if (job_.load(std::memory_order_acquire) != seen) {
          return true;
        }
        relax();
      }
    } while (Clock::now() < end);
    return false;
  }

  void work(int index) {
    inside_tile = true;
    uint32_t seen = 0;
    while (index < kept_.load()) {
      while (!comes_soon(seen)) {
        job_.wait(seen, std::memory_order_acquire);
      }
      seen = job_.load(std::memory_order_acquire);
      take_tiles();
    }
  }

  std::vector<std::thread> workers_;
  std::atomic<uint32_t> job_{0};
  std::atomic<uint64_t> ticket_{0};
  std::atomic<int> done_{0};
  std::atomic<int> kept_{kMostThreads}; // workers from this one on end
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_; // of the first tile that threw
  detail::Body body_ = nullptr;
  void* context_ = nullptr;
};

struct PoolOwner {
  std::mutex mutex; // held while tiles run: streams take turns
  int count = 0; // 0: not set, all cores
  std::unique_ptr<ThreadPool> pool;
};

PoolOwner& owner() {
  // Never destroyed: a stream's thread may still run an op at process exit.
  static auto* instance = new PoolOwner;
  return *instance;
}

int resolve(int count) {
  if (count > 0) {
    return std::min(count, kMostThreads);
  }
  int cores = static_cast<int>(std::thread::hardware_concurrency());
  return cores > 0 ? cores : 1;
}

} // namespace

void set_threads(int count) {
  auto& o = owner();
  std::lock_guard<std::mutex> lock(o.mutex);
  if (o.pool && o.pool->workers() != resolve(count) - 1) {
    o.pool.reset();
  }
  o.count = count;
}

int threads() {
  auto& o = owner();
  std::lock_guard<std::mutex> lock(o.mutex);
  return resolve(o.count);
}

void keep_tiles() {
  inside_tile = true;
}

void spread_tiles(bool spread) {
  tiles_are_spread.store(spread, std::memory_order_relaxed);
}

void detail::run_tiles(int tiles, Body body, void* context) {
  if (tiles <= 1 || inside_tile ||
      !tiles_are_spread.load(std::memory_order_relaxed) ||
      static_cast<uint64_t>(tiles) > Ticket::kMostTiles) {
    for (int tile = 0; tile < tiles; ++tile) {
      body(context, tile);
    }
    return;
  }
  auto& o = owner();
  std::lock_guard<std::mutex> lock(o.mutex);
  if (!o.pool) {
    o.pool = std::make_unique<ThreadPool>(resolve(o.count) - 1);
  }
  InsideTile inside;
  o.pool->run(tiles, body, context);
}

} // namespace nightingale::cpu
