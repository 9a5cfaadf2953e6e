#pragma once

#include <cstdint>
#include <vector>

namespace nightingale::cpu {

// A budget is enforced every so many positions: choosing costs more than
// attending to a few too many.
constexpr int kEvictionStep = 16;

// Positions of the latest that every head keeps at least.
constexpr int kLeastRecent = 8;

// Whether positions are dropped after the ones from `past` to `length`.
bool evicts(int past, int length, int kept);

// One head of one batch row: `filled` vectors of `bytes` in each cache.
struct EvictedHead {
  char* keys;
  char* values;
  int64_t bytes;
  float* mass;
  int filled;
};

// Drops what a layer's heads, together, hold beyond `budget` of the positions
// [kept, length): never the first `kept`, never the latest, of which each head
// keeps half its budget. The other half the heads share, half of it evenly and
// half in proportion to the number of positions that each looks at, which is
// the exponential of the entropy of its attention; what is left to a head are
// the positions that it has given most. Gives how many each head has dropped.
std::vector<int> evict(
    const std::vector<EvictedHead>& heads,
    int kept,
    int length,
    float budget);

// Shares `pool` in proportion to `weights`, whole numbers up to `most` each.
std::vector<int> share(
    int pool,
    const std::vector<double>& weights,
    const std::vector<int>& most);

} // namespace nightingale::cpu
