#pragma once

#include "bindings.h"
#include "nightingale/models/t3/speech_tokens.h"

// A draft in one voice, and what its utterances so far have taught.
struct BoundDraft {
  nightingale::MakeDraft make;
  std::shared_ptr<nightingale::ProposalLength> length =
      std::make_shared<nightingale::ProposalLength>(std::nullopt);
};

// What a draft has brought, by name.
nb::typed<nb::dict, nb::str, int> speculation_info(
    const nightingale::SpeculationCounts& counts);
