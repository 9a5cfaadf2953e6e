#pragma once

#include <string>
#include <vector>

#include "nightingale/models/weights.h"

// Batch normalisation that is no longer trained: a scale and a shift of each
// channel, part of the convolution before it where there is one.

namespace nightingale {

struct BatchNorm {
  std::vector<double> scale, shift; // of each channel

  // `affine`: with a trained scale and shift on top.
  static BatchNorm take(
      Weights& weights,
      const std::string& name,
      int channels,
      bool affine = true);
};

// A convolution and the norm behind it. w: [O, taps, C]; b: [O]
struct NormedConv {
  mx::array w, b;

  // expected: [O, C, taps], as the file has it
  static NormedConv take(
      Weights& weights,
      const std::string& conv,
      const mx::Shape& expected,
      const BatchNorm& norm);

  // A convolution over frequency and time as one over time, whose channels are
  // those of all frequencies under the kernel, the lowest first.
  // expected: [O, C, bands, taps] → w: [O, taps, bands * C]
  static NormedConv take_2d(
      Weights& weights,
      const std::string& conv,
      const mx::Shape& expected,
      const BatchNorm& norm);
};

// relu(x * scale + shift). x: [..., C]
class NormRelu {
 public:
  static NormRelu take(Weights& weights, const std::string& name, int channels);

  mx::array operator()(const mx::array& x, mx::Stream s) const;

 private:
  NormRelu(mx::array scale, mx::array shift);

  mx::array scale_, shift_;
};

} // namespace nightingale
