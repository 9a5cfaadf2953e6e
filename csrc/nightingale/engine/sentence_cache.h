#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "nightingale/engine/word_times.h"

namespace nightingale {

// What a chunk of a sentence brings, whatever comes before the sentence and
// after it.
struct SentenceChunk {
  std::vector<float> samples;
  std::vector<int> tokens;
  std::vector<WordTime> words;

  size_t nbytes() const;
};

using SentenceChunks = std::vector<SentenceChunk>;

// Sentences that were spoken to their ends, by all that their sound depends on.
// Bounded; those that were not asked for the longest go first. For several
// threads.
class SentenceCache {
 public:
  explicit SentenceCache(size_t limit) : limit_(limit) {}

  // None where it is not there.
  std::shared_ptr<const SentenceChunks> find(const std::string& key);

  // One that takes more than the whole cache is not kept.
  void keep(const std::string& key, SentenceChunks chunks);

  struct Counts {
    uint64_t hits = 0;
    uint64_t misses = 0;
    size_t sentences = 0;
    size_t bytes = 0;
    size_t limit = 0;
  };
  Counts counts() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const SentenceChunks> chunks;
    size_t bytes;
  };

  size_t limit_;
  mutable std::mutex mutex_;
  std::list<Entry> entries_; // the one asked for last is first
  std::unordered_map<std::string, std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
  uint64_t hits_ = 0;
  uint64_t misses_ = 0;
};

// Joins values to a key that is the same only where all of them are.
class CacheKey {
 public:
  void add(const std::string& text);
  void add(const std::vector<int>& numbers);

  template <typename T>
    requires std::is_arithmetic_v<T>
  void add(T number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) {
      add(*value);
    }
  }

  std::string take() {
    return std::move(bytes_);
  }

 private:
  std::string bytes_;
};

} // namespace nightingale
