#include "nightingale/engine/chunk_ends.h"

#include <algorithm>
#include <cmath>

namespace nightingale {

namespace {

constexpr double kGrowth = 1.5; // of each chunk over the last, from the third
constexpr int kLongest = 100; // tokens, or the second chunk's if that is longer

} // namespace

ChunkEnds::ChunkEnds(const SpeechOptions& options)
    : next_(options.first_chunk),
      length_(options.chunk),
      longest_(std::max(kLongest, options.chunk)) {}

ChunkEnds::ChunkEnds(std::vector<int> ends)
    : listed_(true), ends_(std::move(ends)) {
  advance();
}

void ChunkEnds::advance() {
  if (listed_) {
    bool over = taken_ == ends_.size();
    next_ = over ? std::nullopt : std::optional(ends_[taken_++]);
  } else if (next_) {
    *next_ += int(std::lrint(length_));
    length_ = std::min(kGrowth * length_, longest_);
  }
}

} // namespace nightingale
