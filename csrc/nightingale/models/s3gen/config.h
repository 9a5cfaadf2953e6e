#pragma once

#include "nightingale/family.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/ops/backend.h"

namespace nightingale {

// Sizes of the flow, as the tensors have them.
struct FlowConfig {
  int sound_tokens; // speech tokens that are sound
  int speaker_size; // of the x-vector

  int width; // of the token encoder
  int ffn;
  int layers; // before the upsampling
  int upper_layers; // after it

  int channels; // of the estimator
  int time_channels;
  int attention; // channels of its heads together
  int estimator_ffn;
  int transformers; // in each level
  int middle_levels;
  bool meanflow; // trained to be solved in few steps, without guidance

  int default_steps() const {
    return meanflow ? 2 : 10;
  }

  // Reads the sizes off the tensors; an Error where they do not make a flow.
  static FlowConfig of(const TensorFile& file);
};

// The bits that flow and vocoder are quantized to on `s` where a model is
// loaded with `bits`; 0 where they stay in floats. The CPU alone runs them
// quantized, to 8 bits also where T3 has 4, and where their file is quantized.
int s3gen_bits(const TensorFile& file, int bits, mx::Stream s);

// ops::Matrix::row_bits of flow and vocoder. T3 keeps 16: its sums choose
// tokens.
constexpr int kS3GenRowBits = 8;

} // namespace nightingale
