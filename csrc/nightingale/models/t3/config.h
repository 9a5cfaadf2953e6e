#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nightingale/family.h"
#include "nightingale/io/tensor_file.h"

namespace nightingale {

// An attention head of the backbone that follows the text while speaking.
struct AlignmentHead {
  int64_t layer;
  int64_t head;
};

// What the tensors cannot say. Built-in values go by the official file name; a
// `nightingale.json` beside the file overrides them, e.g.
//   {"t3": {"analyser": true, "alignment_heads": [[9, 2], [12, 15]],
//           "repetition_penalty": 2.0}}
struct T3Settings {
  std::vector<AlignmentHead> alignment_heads;
  bool analyser = false; // the alignment analyser guards the stop token
  bool stop_at_repeat = true; // it ends speech where a token comes twice
  float repetition_penalty = 1.2f; // default where the caller gives none

  static T3Settings for_file(const std::string& path);
};

// Sizes, as the tensors have them.
struct T3Config {
  int layers;
  int hidden;
  int ffn;
  int text_vocabulary;
  int speech_vocabulary;
  int text_positions;
  int speech_positions;
  int speaker_size;
  int perceiver_queries;
  T3Settings settings;

  int heads() const {
    return hidden / kHeadDim;
  }

  // Reads the sizes off the tensors; an Error where they do not make a T3.
  // Settings are those of the file `settings_of`.
  static T3Config of(const TensorFile& file, const std::string& settings_of);
};

// The bits that T3 quantizes a tensor to where it is loaded with `bits`; 0
// where it stays in floats, as all do where `bits` is 0. Decoding reads the
// backbone's matrices and the head, which is small and chooses the token: 8
// bits at least.
int t3_bits(const std::string& name, int bits);

} // namespace nightingale
