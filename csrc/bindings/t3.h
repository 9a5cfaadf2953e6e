#pragma once

#include "bindings.h"
#include "nightingale/models/t3/speech_tokens.h"

// A draft in one voice, and what its utterances so far have taught.
struct BoundDraft {
  nightingale::MakeDraft make;
  std::shared_ptr<nightingale::ProposalLength> length =
      std::make_shared<nightingale::ProposalLength>(std::nullopt);
};

// By layer and head.
inline std::vector<nightingale::AlignmentHead> heads_from(
    const std::vector<std::pair<int, int>>& pairs) {
  std::vector<nightingale::AlignmentHead> heads;
  for (auto [layer, head] : pairs) {
    heads.push_back({layer, head});
  }
  return heads;
}

// What a draft has brought, by name.
nb::typed<nb::dict, nb::str, int> speculation_info(
    const nightingale::SpeculationCounts& counts);
