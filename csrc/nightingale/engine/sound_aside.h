#pragma once

#include <memory>
#include <vector>

#include "nightingale/engine/sentence_sound.h"
#include "nightingale/ops/lanes.h"

namespace nightingale {

// The chunk that was begun of a sentence's sound, made in a lane. Nobody else
// uses that sound until it is done. Dropping it is all that cancelling takes.
class SoundAside {
 public:
  // None where the system gives no thread for it.
  static std::unique_ptr<SoundAside> begin(
      std::shared_ptr<SentenceSound> sound,
      Clock::time_point due);

  ~SoundAside() {
    work_->drop();
  }
  SoundAside(const SoundAside&) = delete;
  SoundAside& operator=(const SoundAside&) = delete;

  bool done() const {
    return work_->done();
  }

  // Waits until it or that of another session is done, or for so long.
  void wait(std::chrono::milliseconds most) const {
    work_->wait(most);
  }

  // The chunk's samples once it is done; throws what failed.
  std::vector<float> take();

 private:
  using Samples = std::shared_ptr<std::vector<float>>;

  SoundAside(std::shared_ptr<ops::LaneWork> work, Samples samples)
      : work_(std::move(work)), samples_(std::move(samples)) {}

  std::shared_ptr<ops::LaneWork> work_;
  Samples samples_;
};

} // namespace nightingale
