#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace nightingale {

// A regular file read at given offsets. Not mapped into memory: a mapped file
// that is truncated by someone else kills the process with SIGBUS, and its
// pages count as ours.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const {
    return path_;
  }

  uint64_t size() const {
    return size_;
  }

  // Reads exactly `size` bytes at `offset`; `what` names them in the error if
  // they are not all there. Safe to call from several threads.
  void read(uint64_t offset, void* dst, size_t size, std::string_view what)
      const;

  // Throws an Error that starts with the path.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::string path_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

} // namespace nightingale
