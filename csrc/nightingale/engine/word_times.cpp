#include "nightingale/engine/word_times.h"

#include <algorithm>

namespace nightingale {

namespace {

constexpr int kTokensPerSecond = 25;

} // namespace

WordTimes::WordTimes(int words, std::vector<int> word_of, double speed)
    : words_(words),
      word_of_(std::move(word_of)),
      seconds_(1 / (kTokensPerSecond * speed)) {}

void WordTimes::add_token(int position) {
  if (position > 0 && !word_of_.empty()) {
    size_t last = std::min<size_t>(position, word_of_.size()) - 1;
    while (std::ssize(starts_) <= word_of_[last]) {
      starts_.push_back(tokens_);
    }
  }
  ++tokens_;
}

void WordTimes::set_positions(const std::vector<int>& positions) {
  tokens_ = 0;
  starts_.clear();
  for (int position : positions) {
    add_token(position);
  }
}

std::vector<WordTime> WordTimes::take(double until) {
  auto ended = bounds(starts_);
  std::erase_if(ended, [&](const Bounds& word) { return word.end > until; });
  return give(ended);
}

std::vector<WordTime> WordTimes::take_rest(double end) {
  auto starts = starts_;
  int last = starts.empty() ? 0 : *std::ranges::max_element(starts);
  starts.push_back(std::max(tokens_, 1 + last));
  auto rest = bounds(starts);
  for (auto& word : rest) {
    word = {std::min(word.start, end), std::min(word.end, end)};
  }
  return give(rest);
}

std::vector<WordTime> WordTimes::give(const std::vector<Bounds>& bounds) {
  size_t end = std::min(words_, bounds.size());
  std::vector<WordTime> found;
  for (size_t i = given_; i < end; ++i) {
    // Positions that have changed since must not lead into a word that was
    // given.
    double start = std::max(bounds[i].start, end_);
    end_ = std::max(start, bounds[i].end);
    found.push_back({int(i), start, end_});
  }
  given_ = std::max(given_, bounds.size());
  return found;
}

// Start and end of all words before the last start; those begun at once share
// the time.
std::vector<WordTimes::Bounds> WordTimes::bounds(
    const std::vector<int>& starts) const {
  std::vector<Bounds> found;
  size_t begin = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i] <= starts[begin]) {
      continue;
    }
    int words = i - begin;
    double share = double(starts[i] - starts[begin]) / words;
    auto edge = [&](int k) { return (starts[begin] + k * share) * seconds_; };
    for (int k = 0; k < words; ++k) {
      found.push_back({edge(k), edge(k + 1)});
    }
    begin = i;
  }
  return found;
}

} // namespace nightingale
