#pragma once

#include <cstddef>
#include <cstdint>

namespace nightingale {

// Continues the CRC-32 of zip (polynomial 0xedb88320) over more bytes; start
// from 0.
uint32_t crc32(uint32_t crc, const void* data, size_t size);

} // namespace nightingale
