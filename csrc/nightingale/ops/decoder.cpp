#include "nightingale/ops/decoder.h"

#include "nightingale/backends/cpu/decoder.h"
#include "nightingale/backends/gpu/decoder.h"
#include "nightingale/ops/linear.h"

namespace nightingale::ops {

mx::array decoder_layers(
    const mx::array& x,
    const std::vector<DecoderRun>& runs,
    const mx::array& frequencies,
    float eps,
    int past,
    std::vector<mx::array>& weights,
    mx::Stream s) {
  if (on_cpu(s) && cpu::can_use_decoder_layers(x, runs)) {
    return cpu::decoder_layers(x, runs, frequencies, eps, past, weights, s);
  }
  auto layer_by_layer = [&](const mx::array& from,
                            std::vector<mx::array>& watched) {
    auto y = from;
    for (const auto& [layer, cache, watch] : runs) {
      auto qkv = norm_linear(y, layer->attention_norm, eps, layer->qkv, s);
      auto attention = projected_attention(
          qkv, frequencies, *cache, past, watch, layer->out, y, s);
      *cache = attention.cache;
      watched.insert(
          watched.end(), attention.weights.begin(), attention.weights.end());
      y = decoder_feed_forward(attention.x, *layer, eps, s);
    }
    return y;
  };
  return gpu::can_use_decoder_step(x, runs, s)
      ? gpu::decoder_step(x, runs, past, weights, layer_by_layer, s)
      : layer_by_layer(x, weights);
}

mx::array decoder_feed_forward(
    const mx::array& x,
    const DecoderLayer& layer,
    float eps,
    mx::Stream s) {
  auto gated = norm_swiglu(x, layer.ffn_norm, eps, layer.gate_up, s);
  return linear(gated, layer.down, {.residual = x}, s);
}

} // namespace nightingale::ops
