#include "nightingale/ops/rotary.h"

#include <cmath>
#include <numbers>
#include <vector>

namespace nightingale::ops {

mx::array rotary_frequencies(int head_dim, const RotaryScaling& scaling) {
  // Between the two wavelengths the stretched and the plain frequency are
  // blended; shorter waves stay as they are, longer ones are stretched.
  float longest = scaling.original_positions / scaling.low_frequency_factor;
  float shortest = scaling.original_positions / scaling.high_frequency_factor;
  int half = head_dim / 2;
  std::vector<float> frequencies(half);
  for (int i = 0; i < half; ++i) {
    float plain = 1.0f / std::pow(scaling.theta, 2.0f * i / head_dim);
    float wavelength = 2.0f * std::numbers::pi_v<float> / plain;
    float stretched = plain / scaling.factor;
    if (wavelength < shortest) {
      frequencies[i] = plain;
    } else if (wavelength > longest) {
      frequencies[i] = stretched;
    } else {
      float blend = (scaling.original_positions / wavelength -
                     scaling.low_frequency_factor) /
          (scaling.high_frequency_factor - scaling.low_frequency_factor);
      frequencies[i] = (1.0f - blend) * stretched + blend * plain;
    }
  }
  return mx::array(frequencies.data(), {half});
}

} // namespace nightingale::ops
