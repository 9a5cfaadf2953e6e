#pragma once

#include <optional>

#include "nightingale/ops/activation.h"

namespace nightingale::ops {

// What a product goes through before it is stored, in this order.
struct Epilogue {
  std::optional<mx::array> bias = std::nullopt; // added; [N]
  Activation activation = Activation::none;
  std::optional<mx::array> snake = std::nullopt; // alpha of Snake; [N]
  std::optional<mx::array> residual = std::nullopt; // added; [..., N]

  // The type of the result: this, else the residual's, else the input's.
  std::optional<mx::Dtype> dtype = std::nullopt;

  mx::Dtype result_dtype(const mx::array& x) const {
    return dtype.value_or(residual ? residual->dtype() : x.dtype());
  }
};

} // namespace nightingale::ops
