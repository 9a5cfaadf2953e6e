#pragma once

#include <vector>

namespace nightingale {

// When a word is spoken, in seconds of its segment.
struct WordTime {
  int word; // its number in the segment
  double start;
  double end;
};

// The times of one segment's words, from the text position of each speech
// token.
class WordTimes {
 public:
  // words: how many are spoken; word_of: for each text token, which word it is
  // part of
  WordTimes(int words, std::vector<int> word_of, double speed = 1);

  // One more speech token, at this text token, the start token included; -1:
  // unknown.
  void add_token(int position);

  // The text tokens of all speech tokens so far, in place of what was known.
  void set_positions(const std::vector<int>& positions);

  // The words, not given before, that have ended by this time.
  std::vector<WordTime> take(double until);

  // The words left when the segment ends at this time.
  std::vector<WordTime> take_rest(double end);

 private:
  struct Bounds {
    double start, end;
  };
  std::vector<Bounds> bounds(const std::vector<int>& starts) const;
  std::vector<WordTime> give(const std::vector<Bounds>& bounds);

  size_t words_;
  std::vector<int> word_of_;
  double seconds_; // of a speech token
  int tokens_ = 0; // speech tokens so far
  std::vector<int> starts_; // the speech token that each word begins with
  size_t given_ = 0; // words
  double end_ = 0; // of the last one
};

} // namespace nightingale
