#include "nightingale/models/t3/quantization.h"

namespace nightingale {

int t3_bits(const std::string& name, int bits) {
  if (bits == 0) {
    return 0;
  }
  if (name == "speech_head.weight") {
    return 8;
  }
  bool matrix =
      name.starts_with("tfmr.layers.") && name.ends_with("_proj.weight");
  return matrix ? bits : 0;
}

} // namespace nightingale
