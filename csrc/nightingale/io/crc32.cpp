#include "nightingale/io/crc32.h"

#include <array>
#include <cstring>

namespace nightingale {

namespace {

// tables[k][b]: what byte b does to the sum when k more bytes follow it.
// Sixteen bytes are then sixteen independent look-ups instead of a chain of
// sixteen.
constexpr size_t step = 16;
using Tables = std::array<std::array<uint32_t, 256>, step>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ (crc & 1 ? 0xedb88320u : 0);
    }
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < step; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      uint32_t crc = tables[k - 1][byte];
      tables[k][byte] = (crc >> 8) ^ tables[0][crc & 0xff];
    }
  }
  return tables;
}

constexpr Tables tables = make_tables();

// The effect of a word with `follow` bytes of its step after it.
uint32_t look_up(uint32_t word, size_t follow) {
  return tables[follow + 3][word & 0xff] ^
      tables[follow + 2][(word >> 8) & 0xff] ^
      tables[follow + 1][(word >> 16) & 0xff] ^ tables[follow][word >> 24];
}

} // namespace

uint32_t crc32(uint32_t crc, const void* data, size_t size) {
  auto* bytes = static_cast<const uint8_t*>(data);
  crc = ~crc;
  for (; size >= step; bytes += step, size -= step) {
    uint32_t words[step / 4];
    std::memcpy(words, bytes, step);
    crc = look_up(words[0] ^ crc, 12) ^ look_up(words[1], 8) ^
        look_up(words[2], 4) ^ look_up(words[3], 0);
  }
  for (; size > 0; ++bytes, --size) {
    crc = (crc >> 8) ^ tables[0][(crc ^ *bytes) & 0xff];
  }
  return ~crc;
}

} // namespace nightingale
