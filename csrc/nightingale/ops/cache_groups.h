#pragma once

namespace nightingale::ops {

// Channels of a vector in a quantized cache that share a scale and an offset: a
// multiple of the vector width of every instruction set.
constexpr int kCacheGroup = 32;
constexpr int kMostCacheGroups = 16; // in a vector

} // namespace nightingale::ops
