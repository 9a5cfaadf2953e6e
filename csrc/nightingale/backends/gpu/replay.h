#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "nightingale/backends/gpu/kernel.h"

// A part of a graph that is built once and run many times. A GPU takes a few
// microseconds for a launch; for the host, building one and scheduling it in
// MLX takes longer.

namespace nightingale::gpu {

inline bool is_computed(const mx::array& x) {
  return x.status() != mx::array::Status::unscheduled;
}

class Recording {
 public:
  // Records the graph from `inputs` to `outputs`, which must not have been
  // evaluated. Other arrays in it are constants if they have been evaluated,
  // and are computed in every replay if not: so arrays that are written in
  // place must have been. nullptr if there is nothing to record. source_bytes:
  // of kernel text in its launches
  static std::shared_ptr<const Recording> of(
      const std::vector<mx::array>& inputs,
      const std::vector<mx::array>& outputs,
      long source_bytes = 0);

  // The same graph on other inputs of these shapes and types, as one op.
  static std::vector<mx::array> replay(
      std::shared_ptr<const Recording> recording,
      const std::vector<mx::array>& inputs,
      mx::Stream s);

  // What each replay launches.
  const LaunchCount& count() const {
    return count_;
  }

 private:
  friend class Recorder;
  friend class Replay;

  struct Node {
    std::shared_ptr<mx::Primitive> primitive;
    std::vector<int> inputs; // numbers of arrays
    std::vector<mx::Shape> shapes; // of its outputs
    std::vector<mx::Dtype> dtypes;
  };

  // Arrays are numbered: the inputs, then `constants`, then the outputs of the
  // nodes in order.
  std::vector<mx::array> constants_;
  std::vector<Node> nodes_;
  std::vector<int> result_of_; // index of the result that an array is, or -1
  std::vector<mx::Shape> result_shapes_;
  std::vector<mx::Dtype> result_dtypes_;
  LaunchCount count_;
};

} // namespace nightingale::gpu
