#include "nightingale/memory.h"

#include <doctest/doctest.h>

#include "io/file_writers.h"
#include "nightingale/backends/cpu/buffers.h"

using namespace nightingale;
using namespace nightingale::testing;

TEST_CASE("memory that the system does not have is an Error with its size") {
  constexpr size_t kTooMuch = size_t(1) << 50;
  const std::string expected = "out of memory: cannot allocate 1073741824 MB";
  CHECK(error_of([] { allocate(kTooMuch); }) == expected);
  CHECK(error_of([] { allocate_block(kTooMuch); }) == expected);
  CHECK(error_of([] { cpu::pooled_data(kTooMuch); }) == expected);
  CHECK(error_of([] { require_room(kTooMuch); }) == expected);
  auto data = allocate(16);
  CHECK(data.buffer().ptr() != nullptr);
}

TEST_CASE("blocks of weights grow from 32 to 256 MB") {
  constexpr size_t kMegabyte = size_t(1) << 20;
  CHECK(next_block_size(0) == 32 * kMegabyte);
  CHECK(next_block_size(32 * kMegabyte) == 64 * kMegabyte);
  CHECK(next_block_size(128 * kMegabyte) == kLargestBlock);
  CHECK(next_block_size(kLargestBlock) == kLargestBlock);
}
