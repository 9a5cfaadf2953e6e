#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "nightingale/io/input_file.h"
#include "nightingale/io/zip_directory.h"

namespace nightingale {

// The entries of a zip archive, each checked against its CRC as it is read.
class ZipFile {
 public:
  explicit ZipFile(const InputFile& file);

  const std::map<std::string, ZipEntry>& entries() const {
    return entries_;
  }

  // nullptr where there is none of this name.
  const ZipEntry* find(const std::string& name) const;

  // The whole of an entry; an Error if it has more than `max_size` bytes.
  std::string read(const ZipEntry& entry, uint64_t max_size) const;

  // Reads an entry from `begin` on, piece by piece. The first reader of an
  // entry reads all of it, so as to check its CRC, and later ones trust that:
  // a storage that thousands of tensors share is not summed for each.
  class RangeReader {
   public:
    RangeReader(const ZipFile& zip, const ZipEntry& entry, uint64_t begin);
    void read(void* dst, size_t size);
    void finish(); // reads on to the end and compares the CRC

   private:
    void skip(uint64_t size);

    const ZipFile& zip_;
    const ZipEntry& entry_;
    const bool verify_;
    uint64_t at_ = 0;
    uint32_t crc_ = 0;
  };

 private:
  bool is_verified(const ZipEntry& entry) const;
  void set_verified(const ZipEntry& entry) const;

  const InputFile& file_;
  const std::map<std::string, ZipEntry> entries_;
  mutable std::mutex mutex_;
  mutable std::set<const ZipEntry*> verified_;
};

} // namespace nightingale
