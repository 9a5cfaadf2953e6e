#include "nightingale/engine/sentence_cache.h"

namespace nightingale {

namespace {

// Of a list's and a map's node, and what the allocator adds.
constexpr size_t kEntryBytes = 256;

size_t bytes_of(const std::string& key, const SentenceChunks& chunks) {
  size_t total = kEntryBytes + 2 * key.size(); // the map has it as well
  for (const auto& chunk : chunks) {
    total += chunk.nbytes();
  }
  return total;
}

} // namespace

size_t SentenceChunk::nbytes() const {
  return sizeof(SentenceChunk) + samples.capacity() * sizeof(float) +
      tokens.capacity() * sizeof(int) + words.capacity() * sizeof(WordTime);
}

std::shared_ptr<const SentenceChunks> SentenceCache::find(
    const std::string& key) {
  std::lock_guard lock(mutex_);
  auto found = by_key_.find(key);
  if (found == by_key_.end()) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->chunks;
}

void SentenceCache::keep(const std::string& key, SentenceChunks chunks) {
  size_t bytes = bytes_of(key, chunks);
  auto kept = std::make_shared<const SentenceChunks>(std::move(chunks));
  std::lock_guard lock(mutex_);
  // Two sessions may have said the same at once.
  if (bytes > limit_ || by_key_.contains(key)) {
    return;
  }
  while (bytes_ + bytes > limit_) {
    bytes_ -= entries_.back().bytes;
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, std::move(kept), bytes});
  by_key_.emplace(key, entries_.begin());
  bytes_ += bytes;
}

SentenceCache::Counts SentenceCache::counts() const {
  std::lock_guard lock(mutex_);
  return {hits_, misses_, entries_.size(), bytes_, limit_};
}

void CacheKey::add(const std::string& text) {
  add(text.size());
  bytes_ += text;
}

void CacheKey::add(const std::vector<int>& numbers) {
  add(numbers.size());
  bytes_.append(
      reinterpret_cast<const char*>(numbers.data()),
      numbers.size() * sizeof(int));
}

} // namespace nightingale
