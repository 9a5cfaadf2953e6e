#pragma once

#include <string>

#include "nightingale/family.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/t3/settings.h"

namespace nightingale {

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
