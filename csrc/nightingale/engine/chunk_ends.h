#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "nightingale/options.h"

namespace nightingale {

// Token counts at which a chunk of a sentence ends, one after another.
class ChunkEnds {
 public:
  // As the options ask for; none where sentences are not divided.
  explicit ChunkEnds(const SpeechOptions& options);
  // Just these.
  explicit ChunkEnds(std::vector<int> ends);

  // The next one, or none.
  const std::optional<int>& next() const {
    return next_;
  }
  void advance();

 private:
  std::optional<int> next_;
  double length_ = 0; // of the chunk after it
  double longest_ = 0;
  bool listed_ = false;
  std::vector<int> ends_;
  size_t taken_ = 0;
};

} // namespace nightingale
