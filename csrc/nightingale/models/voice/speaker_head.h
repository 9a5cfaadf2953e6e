#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/voice/batch_norm.h"

namespace nightingale {

// The speaker encoder's convolutions over frequency and time, which leave an
// eighth of the frequencies and all of the frames.
class SpeakerHead {
 public:
  SpeakerHead(Weights& weights, const std::string& name);

  // fbank: [frames, bands] → [1, frames, channels()]
  mx::array run(const mx::array& fbank, mx::Stream s) const;

  int channels() const;

 private:
  // Two convolutions beside a way around them.
  struct ResBlock {
    int stride; // over frequency
    NormedConv first, second;
    // Where bands are left out.
    std::optional<NormedConv> shortcut = std::nullopt;
  };

  ResBlock take_block(Weights& weights, const std::string& name, int stride)
      const;

  int width_; // channels of a frequency
  NormedConv entry_;
  std::vector<ResBlock> blocks_;
  NormedConv exit_;
};

} // namespace nightingale
