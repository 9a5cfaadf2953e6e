#pragma once

#include <stdexcept>
#include <string>

namespace nightingale {

// A failure whose message says what was wrong, what was expected and, where
// there is one, what to do. Python sees it as `nightingale.Error`; bad argument
// values are `std::invalid_argument`, which Python sees as `ValueError`.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A stage gave NaN or infinity. The message is the stage: T3 model, flow or
// vocoder.
class NotFinite : public Error {
 public:
  using Error::Error;
};

// Throws std::invalid_argument where an argument does not meet `condition`.
inline void require(bool condition, const std::string& message) {
  if (!condition) {
    throw std::invalid_argument(message);
  }
}

} // namespace nightingale
