#include <algorithm>

#include "nightingale/models/t3/draft.h"

namespace nightingale {

namespace {

// Runs of this many tokens are looked for, the longest first.
constexpr int kLongestRun = 4;
constexpr int kShortestRun = 2;

class NgramDraft : public Draft {
 public:
  explicit NgramDraft(std::vector<int> prompt) : heard_(std::move(prompt)) {
    prompt_size_ = heard_.size();
  }

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    heard_.insert(
        heard_.end(),
        spoken.tokens.begin() + (heard_.size() - prompt_size_),
        spoken.tokens.end());
    int size = heard_.size(), after = size;
    for (int run = kLongestRun; run >= kShortestRun && after == size; --run) {
      after = after_run(run);
    }
    auto first = heard_.begin() + after;
    return {first, first + std::min(count, size - after)};
  }

 private:
  // Where the last `run` tokens ended the last time they were heard before; the
  // end where they were not.
  int after_run(int run) const {
    int size = heard_.size();
    auto pattern = heard_.end() - std::min(run, size);
    for (int end = size - 1; end >= run; --end) {
      if (std::equal(pattern, heard_.end(), heard_.begin() + end - run)) {
        return end;
      }
    }
    return size;
  }

  std::vector<int> heard_; // the prompt, then what was spoken
  size_t prompt_size_;
};

} // namespace

MakeDraft ngram_draft(std::vector<int> prompt_tokens) {
  return [prompt = std::move(prompt_tokens)](const SpeechRequest&) {
    return std::make_unique<NgramDraft>(prompt);
  };
}

} // namespace nightingale
