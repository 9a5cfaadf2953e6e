#pragma once

#include <deque>
#include <string>
#include <string_view>

#include "nightingale/io/pickle_value.h"

namespace nightingale {

// Owns everything one pickle built, so that cycles cost nothing to free.
class Pickle {
 public:
  // Runs the pickle `bytes` of torch.save (protocols 2 to 5). It can make
  // tensors and plain containers; whatever else it asks for is an Error that
  // names it. Work and memory are bounded by the length of `bytes`.
  Pickle(std::string_view bytes, std::string_view source);
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  const PickleValue& value() const {
    return value_;
  }

 private:
  friend class Unpickler;

  PickleValue value_;
  std::deque<std::string> strings_;
  std::deque<PickleTuple> tuples_;
  std::deque<PickleList> lists_;
  std::deque<PickleDict> dicts_;
  std::deque<PickleStorage> storages_;
  std::deque<PickleTensor> tensors_;
};

} // namespace nightingale
