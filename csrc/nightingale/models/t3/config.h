#pragma once

#include <optional>
#include <string>

#include "nightingale/family.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/models/t3/settings.h"
#include "nightingale/models/t3/traits.h"

namespace nightingale {

// Sizes, as the tensors have them.
struct T3Config {
  BackboneKind backbone;
  int layers;
  int hidden;
  int ffn;
  int text_vocabulary;
  int speech_vocabulary;
  int text_positions; // start and stop included
  int speech_positions;
  int positions; // of all together; 0: they are counted apart
  int speaker_size;
  int perceiver_queries; // 0: no perceiver
  T3Settings settings;

  int heads() const {
    return hidden / kHeadDim;
  }

  const T3Traits& traits() const {
    return T3Traits::of(backbone);
  }

  // Reads the sizes off the tensors; an Error where they do not make a T3.
  // Settings are those of the file `settings_of`, with `preset`.
  static T3Config of(
      const TensorFile& file,
      const std::string& settings_of,
      const std::optional<std::string>& preset = std::nullopt);
};

// The bits that T3 quantizes a tensor to where it is loaded with `bits`; 0
// where it stays in floats, as all do where `bits` is 0. Decoding reads the
// backbone's matrices and the head, which is small and chooses the token: 8
// bits at least.
int t3_bits(const std::string& name, int bits);

// Whether the tensor is a matrix whose floats are transposed in a file: GPT-2's
// are [inputs, outputs]. Quantized ones are [outputs, inputs] in every file.
bool t3_transposed(const std::string& name);

} // namespace nightingale
