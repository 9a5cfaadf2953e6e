#include "nightingale/engine/sound_aside.h"

#include <utility>

namespace nightingale {

std::unique_ptr<SoundAside> SoundAside::begin(
    std::shared_ptr<SentenceSound> sound,
    Clock::time_point due) {
  auto samples = std::make_shared<std::vector<float>>();
  auto work = ops::LaneWork::begin(
      due,
      [samples, sound = std::move(sound)](
          const mx::Stream& s, const ops::LaneWork& work) {
        *samples = sound->make(s, work);
      });
  return work ? std::unique_ptr<SoundAside>(
                    new SoundAside(std::move(work), std::move(samples)))
              : nullptr;
}

std::vector<float> SoundAside::take() {
  work_->check();
  return std::move(*samples_);
}

} // namespace nightingale
