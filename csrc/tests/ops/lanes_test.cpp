#include "nightingale/ops/lanes.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <latch>
#include <mutex>
#include <string>
#include <vector>

#include "arrays.h"
#include "backends/cpu/thread_count.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"
#include "nightingale/ops/machine.h"

using namespace nightingale;
using namespace std::chrono_literals;
using namespace nightingale::testing;
using ops::LaneWork;

namespace {

using Works = std::vector<std::shared_ptr<LaneWork>>;

std::shared_ptr<LaneWork> begin(LaneWork::Body body, int due = 0) {
  LaneWork::Due first{};
  auto work =
      LaneWork::begin(first + std::chrono::seconds(due), std::move(body));
  REQUIRE(work);
  return work;
}

void wait(const LaneWork& work) {
  while (!work.done()) {
    work.wait(5ms);
  }
}

mx::array failing_op(const mx::Stream& s) {
  return cpu::make_op(
      "Failing",
      {{3}},
      {mx::ones({3}, mx::float32, s)},
      [](const cpu::Arrays&, cpu::Arrays&) {
        throw std::runtime_error("no luck");
      },
      s);
}

} // namespace

TEST_CASE("lanes compute what other threads do, each in one thread") {
  ThreadCount two(2);
  std::vector<mx::array> results(6, mx::array(0.0f));
  std::vector<int> tiles(6, 0);
  Works works;
  for (int i = 0; i < 6; ++i) {
    works.push_back(begin([&, i](const mx::Stream& s, const LaneWork&) {
      auto x = mx::arange(0, 40 + i, 1, mx::float32, s);
      results[i] = cpu::make_op(
          "Spread",
          {x.shape()},
          {x},
          [&, i](const cpu::Arrays& in, cpu::Arrays& out) {
            cpu::parallel_for(40 + i, [&](int tile) {
              out[0].data<float>()[tile] = 2 * in[0].data<float>()[tile];
              ++tiles[i]; // by one thread, or this is a race
            });
          },
          s);
      mx::eval(results[i]);
    }));
  }
  for (int i = 0; i < 6; ++i) {
    wait(*works[i]);
    works[i]->check();
    CHECK(tiles[i] == 40 + i);
    REQUIRE(results[i].size() == 40 + i);
    CHECK(results[i].data<float>()[39 + i] == 2 * (39 + i));
  }
  ops::wait_for_lanes();
  CHECK_FALSE(ops::lanes_work());
}

TEST_CASE("what fails in a lane is that work's own failure") {
  ThreadCount two(2);
  auto failures = ops::failed_ops();
  auto throwing = begin([](const mx::Stream& s, const LaneWork&) {
    mx::eval(failing_op(s));
    throw std::out_of_range("too far");
  });
  auto failing = begin(
      [](const mx::Stream& s, const LaneWork&) { mx::eval(failing_op(s)); });
  Works good;
  for (int i = 0; i < 4; ++i) {
    good.push_back(begin([](const mx::Stream& s, const LaneWork&) {
      mx::eval(mx::ones({3}, mx::float32, s));
    }));
  }
  wait(*throwing);
  CHECK_THROWS_AS(throwing->check(), std::out_of_range);
  wait(*failing);
  CHECK_THROWS_WITH_AS(failing->check(), "no luck", Error);
  for (const auto& each : good) {
    wait(*each);
    CHECK_NOTHROW(each->check());
  }
  CHECK(ops::failed_ops() == failures);
}

TEST_CASE("lanes begin what is due first, and nothing that was dropped") {
  ThreadCount two(2);
  std::latch begun(ops::lanes()), go(1);
  Works works;
  for (int i = 0; i < ops::lanes(); ++i) {
    works.push_back(begin([&](const mx::Stream&, const LaneWork&) {
      begun.count_down();
      go.wait();
    }));
  }
  begun.wait();
  std::mutex mutex;
  std::vector<int> order;
  for (int due : {5, 3, 9, 1, 7, 4}) {
    works.push_back(begin(
        [&, due](const mx::Stream&, const LaneWork&) {
          std::lock_guard lock(mutex);
          order.push_back(due);
        },
        due));
  }
  works.back()->drop();
  go.count_down();
  for (const auto& each : works) {
    wait(*each);
  }
  REQUIRE(order.size() == 5);
  // Lanes that begin at once may note it in another order.
  for (int i = 0; i < 5; ++i) {
    int due = 2 * i + 1;
    CHECK(std::abs(order[i] - due) <= 2);
  }
}
