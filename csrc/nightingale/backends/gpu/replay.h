#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nightingale/ops/backend.h"

// A part of a graph that is built once and run many times. Where a GPU takes a
// few microseconds for a launch, building one and having MLX find its place
// among the others takes the host longer than that.

namespace nightingale::gpu {

inline bool is_computed(const mx::array& x) {
  return x.status() != mx::array::Status::unscheduled;
}

class Recording {
 public:
  // What makes `outputs`, none of which has been computed, of `inputs`. Other
  // arrays that it needs stay as they are if they have been, and else are made
  // anew each time: so what is written in place must have been computed.
  // Nothing is returned where there is nothing to repeat.
  static std::shared_ptr<const Recording> of(
      const std::vector<mx::array>& inputs,
      const std::vector<mx::array>& outputs);

  // The same of other inputs of these shapes and types, as one op.
  static std::vector<mx::array> replay(
      std::shared_ptr<const Recording> recording,
      const std::vector<mx::array>& inputs,
      mx::Stream s);

  // Of kernels, in each replay.
  int launches() const {
    return launches_;
  }

 private:
  friend class Recorder;
  friend class Replay;

  struct Node {
    std::shared_ptr<mx::Primitive> primitive;
    std::vector<int> inputs; // by number
    std::vector<mx::Shape> shapes; // of its outputs
    std::vector<mx::Dtype> dtypes;
  };

  // Arrays have numbers: first the inputs, then `constants`, then what the
  // nodes make, one node after the other.
  std::vector<mx::array> constants_;
  std::vector<Node> nodes_;
  std::vector<int> result_of_; // which result an array is by its number, or -1
  std::vector<mx::Shape> result_shapes_;
  std::vector<mx::Dtype> result_dtypes_;
  int launches_ = 0;
};

} // namespace nightingale::gpu
