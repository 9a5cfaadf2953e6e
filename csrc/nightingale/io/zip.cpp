#include "nightingale/io/zip.h"

#include <algorithm>
#include <vector>

#include "nightingale/io/crc32.h"

namespace nightingale {

namespace {

// Summed while still in the second-level cache.
constexpr size_t block_bytes = size_t(1) << 18;

} // namespace

ZipFile::ZipFile(const InputFile& file)
    : file_(file), entries_(read_zip_directory(file)) {}

const ZipEntry* ZipFile::find(const std::string& name) const {
  auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

std::string ZipFile::read(const ZipEntry& entry, uint64_t max_size) const {
  if (entry.size > max_size) {
    file_.fail(
        "zip entry '" + entry.name + "' has " + std::to_string(entry.size) +
        " bytes, expected at most " + std::to_string(max_size));
  }
  std::string bytes(entry.size, '\0');
  RangeReader reader(*this, entry, 0);
  reader.read(bytes.data(), bytes.size());
  reader.finish();
  return bytes;
}

bool ZipFile::is_verified(const ZipEntry& entry) const {
  std::lock_guard lock(mutex_);
  return verified_.contains(&entry);
}

void ZipFile::set_verified(const ZipEntry& entry) const {
  std::lock_guard lock(mutex_);
  verified_.insert(&entry);
}

ZipFile::RangeReader::RangeReader(
    const ZipFile& zip,
    const ZipEntry& entry,
    uint64_t begin)
    : zip_(zip), entry_(entry), verify_(!zip.is_verified(entry)) {
  if (verify_) {
    skip(begin);
  } else {
    at_ = begin;
  }
}

void ZipFile::RangeReader::read(void* dst, size_t size) {
  auto* out = static_cast<char*>(dst);
  while (size > 0) {
    size_t count = std::min(size, verify_ ? block_bytes : size);
    zip_.file_.read(
        entry_.data + at_, out, count, "zip entry '" + entry_.name + "'");
    if (verify_) {
      crc_ = crc32(crc_, out, count);
    }
    at_ += count;
    out += count;
    size -= count;
  }
}

void ZipFile::RangeReader::skip(uint64_t size) {
  std::vector<char> block(std::min<uint64_t>(size, block_bytes));
  for (uint64_t left = size; left > 0;) {
    size_t count = std::min<uint64_t>(left, block.size());
    read(block.data(), count);
    left -= count;
  }
}

void ZipFile::RangeReader::finish() {
  if (!verify_) {
    return;
  }
  skip(entry_.size - at_);
  if (crc_ != entry_.crc) {
    zip_.file_.fail(
        "the checksum of zip entry '" + entry_.name + "' is " +
        std::to_string(crc_) + ", expected " + std::to_string(entry_.crc) +
        "; the file is damaged");
  }
  zip_.set_verified(entry_);
}

} // namespace nightingale
