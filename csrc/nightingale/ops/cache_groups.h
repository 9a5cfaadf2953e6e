#pragma once

namespace nightingale::ops {

// Channels of a head's vector in a cache of codes that share a scale and an
// offset: whole vectors of every instruction set.
constexpr int kCacheGroup = 32;
constexpr int kMostCacheGroups = 16; // in a vector

} // namespace nightingale::ops
