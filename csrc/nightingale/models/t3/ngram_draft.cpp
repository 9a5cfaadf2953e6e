#include <algorithm>

#include "nightingale/models/t3/draft.h"

namespace nightingale {

namespace {

// Runs of this many tokens are looked for, the longest first.
constexpr int kLongestRun = 4;
constexpr int kShortestRun = 2;

class NgramDraft : public Draft {
 public:
  explicit NgramDraft(std::vector<int> prompt) : history_(std::move(prompt)) {
    prompt_size_ = history_.size();
  }

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    history_.insert(
        history_.end(),
        spoken.tokens.begin() + (history_.size() - prompt_size_),
        spoken.tokens.end());
    int size = history_.size(), after = size;
    for (int run = kLongestRun; run >= kShortestRun && after == size; --run) {
      after = after_run(run);
    }
    auto first = history_.begin() + after;
    return {first, first + std::min(count, size - after)};
  }

 private:
  // Where the last `run` tokens ended the last time they were heard before; the
  // end where they were not.
  int after_run(int run) const {
    int size = history_.size();
    auto pattern = history_.end() - std::min(run, size);
    for (int end = size - 1; end >= run; --end) {
      if (std::equal(pattern, history_.end(), history_.begin() + end - run)) {
        return end;
      }
    }
    return size;
  }

  std::vector<int> history_; // the prompt, then what was spoken
  size_t prompt_size_;
};

} // namespace

MakeDraft ngram_draft(std::vector<int> prompt_tokens) {
  return [prompt = std::move(prompt_tokens)](const SpeechRequest&) {
    return std::make_unique<NgramDraft>(prompt);
  };
}

} // namespace nightingale
