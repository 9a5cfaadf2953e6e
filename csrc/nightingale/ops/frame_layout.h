#pragma once

#include <utility>
#include <vector>

#include "nightingale/ops/backend.h"

namespace nightingale::ops {

// How the rows of an array are frames: `batch` sequences of as many rows each,
// one below the other.
struct FrameLayout {
  int batch;
  // Where solutions of the flow share the array: how many frames each has. Rows
  // of its sequences beyond them mean nothing. Empty: one solution, of all
  // rows.
  std::vector<int> lengths;

  FrameLayout(int batch, std::vector<int> lengths = {})
      : batch(batch), lengths(std::move(lengths)) {}

  int solutions() const {
    return lengths.empty() ? 1 : static_cast<int>(lengths.size());
  }
  // Sequences of a solution: two with guidance.
  int sequences() const {
    return batch / solutions();
  }
};

} // namespace nightingale::ops
