#include "nightingale/backends/cpu/threads.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <new>
#include <thread>
#include <vector>

#include "backends/cpu/thread_count.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

// Runs every tile and returns how often each was.
std::vector<int> visits(int tiles) {
  std::vector<std::atomic<int>> counts(tiles);
  cpu::parallel_for(tiles, [&](int tile) {
    counts[tile].fetch_add(1, std::memory_order_relaxed);
  });
  return {counts.begin(), counts.end()};
}

// Whether `body` returns true within a time, tried in a process of its own:
// what hangs a pool would hang every test after it.
template <typename F>
bool succeeds_in_child(int seconds, F body) {
  // A pool does not survive a fork; one of no workers is made anew.
  ThreadCount alone(1);
  cpu::parallel_for(2, [](int) {});
  pid_t child = fork();
  if (child == 0) {
    alarm(seconds);
    _exit(body() ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

TEST_CASE("parallel_for runs each tile once, whatever the thread count") {
  for (int threads : {1, 2, 3, 4, 7, 16}) {
    ThreadCount count(threads);
    CHECK(cpu::threads() == threads);
    for (int tiles : {0, 1, 2, 3, 5, 64, 1000}) {
      CAPTURE(threads);
      CAPTURE(tiles);
      CHECK(visits(tiles) == std::vector<int>(tiles, 1));
    }
  }
}

TEST_CASE("a thread count of 0 is all cores") {
  ThreadCount count(0);
  CHECK(cpu::threads() == int(std::thread::hardware_concurrency()));
}

TEST_CASE("parallel_for waits for its slowest tile") {
  ThreadCount count(3);
  std::atomic<int> done{0};
  cpu::parallel_for(3, [&](int tile) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5 * tile));
    ++done;
  });
  CHECK(done == 3);
}

TEST_CASE("100,000 tiny jobs lose no tile") {
  for (int threads : {2, 4}) {
    ThreadCount count(threads);
    std::atomic<int64_t> sum{0};
    for (int job = 0; job < 100'000; ++job) {
      cpu::parallel_for(3, [&](int tile) {
        sum.fetch_add(tile + 1, std::memory_order_relaxed);
      });
    }
    CHECK(sum == 600'000);
  }
}

TEST_CASE("the thread count may change between jobs") {
  ThreadCount restore(0);
  for (int round = 0; round < 60; ++round) {
    cpu::set_threads(round % 5 + 1);
    REQUIRE(visits(37) == std::vector<int>(37, 1));
  }
}

TEST_CASE("jobs of several threads at once take turns") {
  ThreadCount count(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&, i] {
      for (int job = 0; job < 500; ++job) {
        int tiles = 5 + i;
        wrong += visits(tiles) != std::vector<int>(tiles, 1);
      }
    });
  }
  for (auto& caller : callers) {
    caller.join();
  }
  CHECK(wrong == 0);
}

TEST_CASE("the thread count may change while jobs run") {
  ThreadCount count(2);
  std::atomic<bool> stop{false};
  std::thread changer([&] {
    for (int i = 0; !stop; ++i) {
      cpu::set_threads(i % 4 + 1);
      std::this_thread::yield();
    }
  });
  int wrong = 0;
  for (int job = 0; job < 500; ++job) {
    wrong += visits(9) != std::vector<int>(9, 1);
  }
  stop = true;
  changer.join();
  CHECK(wrong == 0);
}

TEST_CASE("nested calls run inline, on whichever thread they are made") {
  CHECK(succeeds_in_child(3, [] {
    cpu::set_threads(1);
    std::atomic<int> inner{0};
    cpu::parallel_for(
        4, [&](int) { cpu::parallel_for(5, [&](int) { ++inner; }); });
    return inner == 20;
  }));
  CHECK(succeeds_in_child(3, [] {
    cpu::set_threads(3);
    std::atomic<int> inner{0};
    for (int job = 0; job < 50; ++job) {
      // Long enough tiles that the workers, not the caller alone, take some.
      cpu::parallel_for(6, [&](int) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        cpu::parallel_for(5, [&](int) { ++inner; });
      });
    }
    return inner == 50 * 6 * 5;
  }));
}

TEST_CASE("a job may have a million tiles and more") {
  for (int tiles : {(1 << 20) - 1, 1 << 20, (1 << 20) + 1, 3'000'000}) {
    CAPTURE(tiles);
    CHECK(succeeds_in_child(
        3, [=] { return visits(tiles) == std::vector<int>(tiles, 1); }));
  }
}

TEST_CASE("what a tile throws reaches the caller after all tiles have run") {
  for (int threads : {1, 4}) {
    ThreadCount count(threads);
    std::atomic<int> run{0};
    auto body = [&](int tile) {
      run.fetch_add(1);
      if (tile == 99) {
        throw std::bad_alloc();
      }
    };
    CHECK_THROWS_AS(cpu::parallel_for(100, body), std::bad_alloc);
    CHECK(run.load() == 100);
    CHECK(visits(64) == std::vector<int>(64, 1)); // the pool still works
  }
}

TEST_CASE("no more threads are asked for than the limit") {
  ThreadCount count(40'000);
  CHECK(cpu::threads() == cpu::kMostThreads);
}

// Sanitizers, which are built with Clang, reserve more than any limit, and
// macOS does not keep to this one.
#if !defined(__clang__)
TEST_CASE("threads that the system refuses are done without") {
  bool works = succeeds_in_child(60, [] {
    // Room for a few stacks of 8 MB.
    rlimit room{size_t(1) << 32, size_t(1) << 32};
    if (setrlimit(RLIMIT_AS, &room) != 0) {
      return false;
    }
    cpu::set_threads(cpu::kMostThreads);
    return visits(64) == std::vector<int>(64, 1);
  });
  CHECK(works);
}
#endif
