#pragma once

#include <memory>
#include <vector>

#include "nightingale/engine/scheduler.h"
#include "nightingale/engine/sentence_cache.h"
#include "nightingale/models/hift/vocoder.h"
#include "nightingale/models/s3gen/flow.h"
#include "nightingale/models/t3/t3.h"
#include "nightingale/ops/lanes.h"

namespace nightingale {

// The networks of one checkpoint and what its settings say. Const after
// loading: all that changes while it speaks belongs to a Session.
struct Model {
  std::shared_ptr<const T3> t3;
  std::shared_ptr<const Flow> flow;
  std::shared_ptr<const Vocoder> vocoder;
  int lookahead = kLookaheadTokens; // tokens that a stream waits for past a cut
  float flow_temperature = 1; // what the flow's noise is multiplied with
  std::shared_ptr<Scheduler> scheduler = std::make_shared<Scheduler>();
  std::shared_ptr<SentenceCache> sentences = nullptr; // none: nothing is kept
  bool may_use_lanes = true;

  // Whether sounds of several sessions are made side by side: on a CPU, where
  // ops are so short that threads which share one wait for each other.
  bool uses_lanes() const {
    constexpr size_t large = size_t(64) << 20;
    return may_use_lanes && ops::on_cpu(flow->stream()) && ops::lanes() > 1 &&
        flow->weight_bytes() < large;
  }
};

} // namespace nightingale
