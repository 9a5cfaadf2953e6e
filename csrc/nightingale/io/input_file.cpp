#include "nightingale/io/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "nightingale/error.h"

namespace nightingale {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  if (path_.find('\0') != std::string::npos) {
    throw Error("a path holds a NUL character, after which it would be cut");
  }
  // O_NONBLOCK so that a named pipe is refused below instead of waited for.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) {
    fail("cannot open: " + std::generic_category().message(errno));
  }
  struct stat status;
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    fail("expected a regular file");
  }
  size_ = static_cast<uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  ::close(descriptor_);
}

void InputFile::read(
    uint64_t offset,
    void* dst,
    size_t size,
    std::string_view what) const {
  // One call may read at most INT_MAX bytes on macOS.
  constexpr size_t max_read = size_t(1) << 30;
  auto* out = static_cast<char*>(dst);
  size_t done = 0;
  while (done < size) {
    ssize_t count = ::pread(
        descriptor_,
        out + done,
        std::min(size - done, max_read),
        static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0) {
      fail("cannot read: " + std::generic_category().message(errno));
    }
    if (count == 0) {
      struct stat status = {};
      ::fstat(descriptor_, &status); // it may have shrunk since it was opened
      fail(
          "file is truncated: " + std::string(what) + " needs bytes " +
          std::to_string(offset) + ".." + std::to_string(offset + size) +
          ", file has " + std::to_string(status.st_size));
    }
    done += static_cast<size_t>(count);
  }
}

void InputFile::fail(const std::string& message) const {
  throw Error(path_ + ": " + message);
}

} // namespace nightingale
