#pragma once

#include <mutex>
#include <string>

namespace nightingale::gpu {

// Text in files of a folder of this process's own, for a compiler that takes
// #include. The folder goes when the process ends.
class IncludeFiles {
 public:
  IncludeFiles();

  // A line that includes `text`; the text itself where no file can be written.
  std::string keep(const std::string& name, const std::string& text);

 private:
  std::mutex mutex_;
  std::string folder_; // empty where none could be made
  int count_ = 0;
};

} // namespace nightingale::gpu
