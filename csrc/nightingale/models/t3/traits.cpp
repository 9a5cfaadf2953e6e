#include "nightingale/models/t3/traits.h"

namespace nightingale {

const T3Traits& T3Traits::of(BackboneKind kind) {
  static constexpr T3Traits llama{
      .name = "llama",
      .guidance = true,
      .emotion = true,
      .prompt_tokens = 150,
      .text_frame = 2,
      .speech_starts = 2,
      .bounds_short_texts = true,
      .penalty_last = false,
      .top_k = 0,
      .top_p = 1.0,
      .min_p = 0.05};
  static constexpr T3Traits gpt2{
      .name = "gpt2",
      .guidance = false,
      .emotion = false,
      .prompt_tokens = 375,
      .text_frame = 0,
      .speech_starts = 1,
      .bounds_short_texts = false,
      .penalty_last = true,
      .top_k = 1000,
      .top_p = 0.95,
      .min_p = 0.0};
  return kind == BackboneKind::gpt2 ? gpt2 : llama;
}

} // namespace nightingale
