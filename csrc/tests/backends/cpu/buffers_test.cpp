#include "nightingale/backends/cpu/buffers.h"

#include <doctest/doctest.h>

#include <atomic>
#include <optional>
#include <thread>

#include "mlx/memory.h"
#include "nightingale/backends/cpu/ops.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

constexpr size_t kDefaultLimit = size_t(256) << 20;

// Where the pool puts that many bytes, which it has back at once.
void* address_of(size_t bytes) {
  auto data = cpu::pooled_data(bytes);
  return data.buffer().raw_ptr();
}

// An empty pool of a given limit while it lives.
struct IdleLimit {
  explicit IdleLimit(size_t bytes) {
    cpu::trim();
    cpu::set_idle_limit(bytes);
  }
  ~IdleLimit() {
    cpu::trim();
    cpu::set_idle_limit(kDefaultLimit);
  }
  IdleLimit(const IdleLimit&) = delete;
};

} // namespace

TEST_CASE("a buffer that is given back is the next one of its size") {
  IdleLimit limit(kDefaultLimit);
  void* first = address_of(5000);
  uint64_t asked = cpu::system_allocations();
  CHECK(cpu::idle_bytes() >= 5000);
  CHECK(cpu::idle_bytes() <= 5000 + 5000 / 8);
  CHECK(address_of(5000) == first);
  // Of the same class: 5000 is rounded up to 5120.
  CHECK(address_of(5100) == first);
  CHECK(cpu::system_allocations() == asked);
  cpu::pooled_data(5121);
  CHECK(cpu::system_allocations() == asked + 1);
}

TEST_CASE("what is in use is not given out again") {
  IdleLimit limit(kDefaultLimit);
  auto a = cpu::pooled_data(100), b = cpu::pooled_data(100);
  CHECK(a.buffer().raw_ptr() != b.buffer().raw_ptr());
}

TEST_CASE("sizes are rounded up by at most an eighth") {
  for (size_t bytes = 1; bytes < (size_t(1) << 30); bytes += bytes / 7 + 1) {
    IdleLimit limit(size_t(2) << 30);
    if (bytes > 64) {
      cpu::pooled_data(bytes);
      CHECK(cpu::idle_bytes() >= bytes);
      CHECK(cpu::idle_bytes() <= bytes + bytes / 8);
    }
  }
}

TEST_CASE("what has been idle for longest is freed above the limit") {
  IdleLimit limit(3 * 1024);
  auto a = std::optional(cpu::pooled_data(1024));
  auto b = std::optional(cpu::pooled_data(1024));
  auto c = std::optional(cpu::pooled_data(2048));
  void* last = c->buffer().raw_ptr();
  a.reset();
  b.reset();
  c.reset();
  CHECK(cpu::idle_bytes() == 3 * 1024);
  uint64_t asked = cpu::system_allocations();
  CHECK(address_of(2048) == last);
  CHECK(cpu::system_allocations() == asked);
  cpu::pooled_data(4096);
  CHECK(cpu::idle_bytes() == 0);
}

TEST_CASE("trim gives everything idle back to MLX") {
  IdleLimit limit(kDefaultLimit);
  size_t before = mx::get_active_memory();
  cpu::pooled_data(1 << 20);
  CHECK(mx::get_active_memory() >= before + (1 << 20));
  cpu::trim();
  CHECK(cpu::idle_bytes() == 0);
  CHECK(mx::get_active_memory() == before);
}

TEST_CASE("trim keeps what was given back last, up to so many bytes") {
  IdleLimit limit(kDefaultLimit);
  {
    auto first = cpu::pooled_data(64 * 1024);
    auto second = cpu::pooled_data(32 * 1024);
  } // the second is given back first
  cpu::trim(100 * 1024);
  CHECK(cpu::idle_bytes() == 96 * 1024);
  cpu::trim(64 * 1024);
  CHECK(cpu::idle_bytes() == 64 * 1024);
  cpu::trim(63 * 1024);
  CHECK(cpu::idle_bytes() == 0);
}

TEST_CASE("results of ops come from the pool and go back to it") {
  IdleLimit limit(kDefaultLimit);
  auto s = cpu_stream();
  auto x = noise_array({300, 80}, 1);
  auto run = [&] {
    auto y = x;
    for (int i = 0; i < 5; ++i) {
      y = cpu::activate(y, ops::Activation::silu, s);
    }
    mx::eval(y);
    mx::synchronize(s);
  };
  run();
  uint64_t asked = cpu::system_allocations();
  for (int i = 0; i < 50; ++i) {
    run();
  }
  CHECK(cpu::system_allocations() == asked);
}

TEST_CASE("results of ops begin at a cache line") {
  auto s = cpu_stream();
  for (int size : {1, 3, 16, 100, 5000}) {
    auto y = cpu::activate(noise_array({size}, 1), ops::Activation::silu, s);
    mx::eval(y);
    CHECK(reinterpret_cast<uintptr_t>(y.data<float>()) % 64 == 0);
  }
}

TEST_CASE("memory stays flat when sizes vary") {
  constexpr size_t most = 1 << 20;
  IdleLimit limit(most);
  auto s = cpu_stream();
  size_t before = mx::get_active_memory();
  for (int i = 0; i < 400; ++i) {
    int rows = 1 + (i * 7919) % 500;
    auto x = mx::zeros({rows, 80}, mx::float32, s);
    auto y = cpu::activate(x, ops::Activation::gelu, s);
    mx::eval(cpu::cast(y, mx::float16, s));
    mx::synchronize(s);
    REQUIRE(cpu::idle_bytes() <= most);
  }
  size_t rounding = 1 << 16; // the allocator's, of every buffer
  CHECK(mx::get_active_memory() <= before + most + rounding);
}

TEST_CASE("MLX ops neither take over nor spoil a pooled buffer") {
  IdleLimit limit(kDefaultLimit);
  auto s = cpu_stream();
  auto x = noise_array({64, 64}, 1);
  Values expected = values(cpu::leaky_relu(x, 0.5f, s));
  for (int i = 0; i < 20; ++i) {
    // Views and in-place results of MLX, of an input nobody else holds.
    auto y = cpu::leaky_relu(x, 0.5f, s);
    auto sum = mx::add(mx::negative(y, s), mx::array(0.0f), s);
    auto back = mx::negative(mx::transpose(mx::transpose(sum, s), s), s);
    auto part = mx::slice(cpu::leaky_relu(x, 0.5f, s), {3, 0}, {4, 64}, s);
    mx::eval(back, part);
    auto other = cpu::leaky_relu(mx::negative(x, s), 0.5f, s);
    mx::eval(other);
    REQUIRE(values(back) == expected);
    Values row(expected.begin() + 3 * 64, expected.begin() + 4 * 64);
    REQUIRE(values(part) == row);
  }
}

TEST_CASE("results without elements take no memory of anybody's") {
  auto s = cpu_stream();
  for (int i = 0; i < 3; ++i) {
    auto x = mx::zeros({0, 16}, mx::float32, s);
    auto y = cpu::leaky_relu(cpu::leaky_relu(x, 0.5f, s), 0.5f, s);
    mx::eval(y);
    CHECK(y.shape() == mx::Shape{0, 16});
  }
}

TEST_CASE("any threads may take and give back at once") {
  IdleLimit limit(1 << 16);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        auto data = cpu::pooled_data(64 + (i * 37 + t) % 8000);
        auto* byte = static_cast<volatile char*>(data.buffer().raw_ptr());
        *byte = t;
        std::this_thread::yield();
        wrong += *byte != t;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  CHECK(wrong == 0);
  CHECK(cpu::idle_bytes() <= 1 << 16);
}
