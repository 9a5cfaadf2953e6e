#pragma once

#include <numeric>

#include "models/s3gen/tiny_s3gen.h"
#include "models/t3/tiny_t3.h"
#include "nightingale/engine/session.h"

namespace nightingale::testing {

inline std::shared_ptr<const Model> tiny_model(bool may_use_lanes = true) {
  auto model = std::make_shared<Model>(
      Model{tiny_t3(), tiny_flow(), tiny_vocoder(), kLookaheadTokens, 1});
  model->may_use_lanes = may_use_lanes;
  return model;
}

inline std::shared_ptr<Manner> tiny_manner(std::optional<int> first_chunk) {
  auto manner = std::make_shared<Manner>();
  manner->voice = tiny_condition();
  manner->flow_voice = std::make_shared<FlowVoice>(tiny_request(1).voice);
  manner->options.steps = 2;
  manner->options.max_tokens = 30;
  manner->options.first_chunk = first_chunk;
  manner->options.chunk = 6;
  return manner;
}

inline Segment segment(std::shared_ptr<const Manner> manner, int number) {
  Segment made;
  made.manner = std::move(manner);
  made.text_tokens.resize(8 + number);
  std::iota(made.text_tokens.begin(), made.text_tokens.end(), 20 + number);
  made.silence = 100 + number;
  return made;
}

inline std::vector<SpokenChunk> rest_of(Session& session) {
  std::vector<SpokenChunk> chunks;
  while (!session.done()) {
    if (auto chunk = session.step()) {
      chunks.push_back(std::move(*chunk));
    }
  }
  return chunks;
}

struct Said {
  std::vector<int> tokens;
  std::vector<float> samples;

  bool operator==(const Said&) const = default;
};

inline Said joined(const std::vector<SpokenChunk>& chunks) {
  Said said;
  for (const auto& chunk : chunks) {
    said.tokens.insert(
        said.tokens.end(), chunk.tokens.begin(), chunk.tokens.end());
    said.samples.insert(
        said.samples.end(), chunk.samples.begin(), chunk.samples.end());
  }
  return said;
}

} // namespace nightingale::testing
