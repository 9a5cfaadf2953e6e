#pragma once

#include <vector>

#include "nightingale/ops/feed_forward.h"
#include "nightingale/ops/ode.h"
#include "nightingale/ops/resnet.h"

namespace nightingale::ops {

// Solutions of the flow that go through its network as rows of the same arrays,
// so that a step of all of them has as many launches as a step of one.

constexpr int kSharedSolutions = 8;

// The network that they go through.
struct FrameNetwork {
  std::vector<const Resnet*> resnets = {};
  std::vector<const CausalConv*> convs = {};
  std::vector<const FeedForward*> feed_forwards = {};
  std::vector<const Matrix*> products = {};
  int head_dim; // of its attention
  mx::Dtype dtype; // of the products
};

// Whether each solution gets the bits that it has alone: if all products are
// kernels that do not choose by the number of rows.
bool can_share_frames(const FrameNetwork& network, mx::Stream s);

struct JoinedInputs {
  mx::array x; // [B of all, rows, C]
  FrameLayout layout;
};

// The inputs of up to kSharedSolutions states, of one B and C, each filled up
// with zeros to the longest. Only where can_share_frames.
JoinedInputs join_inputs(
    const std::vector<const OdeState*>& states,
    mx::Stream s);

} // namespace nightingale::ops
