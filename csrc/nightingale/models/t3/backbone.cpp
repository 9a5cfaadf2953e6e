#include "nightingale/models/t3/backbone.h"

#include <numeric>

#include "mlx/ops.h"
#include "nightingale/error.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/linear.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale {

namespace {

void check_room(const KvCache& cache, int count) {
  int needed = cache.length + count;
  if (needed > cache.capacity()) {
    throw Error(
        "the KV cache holds " + std::to_string(cache.capacity()) +
        " positions; " + std::to_string(needed) + " are needed");
  }
}

void keep_weights(
    const std::vector<mx::array>& weights,
    TextAttention* text_attention) {
  if (text_attention) {
    auto& kept = text_attention->weights;
    kept.insert(kept.end(), weights.begin(), weights.end());
  }
}

} // namespace

Backbone::Backbone(
    BackboneWeights weights,
    const T3Config& config,
    mx::Dtype dtype)
    : heads_(config.heads()),
      dtype_(dtype),
      alignment_heads_(config.settings.alignment_heads),
      layers_(std::move(weights.layers)),
      norm_(std::move(weights.norm)),
      frequencies_(std::move(weights.frequencies)) {}

void Backbone::keep_cache(const KvOptions& options, mx::Stream s) {
  if (options.bits != 0) {
    ops::quantized_words(kHeadDim, options.bits); // an Error for other bits
  }
  if (!(options.budget >= 0.0f && options.budget <= 1.0f)) {
    throw std::invalid_argument(
        "kv_budget must be above 0 and at most 1, not " +
        std::to_string(options.budget));
  }
  if (options.budget > 0.0f && !ops::on_cpu(s)) {
    throw Error(
        "kv_budget drops positions on the CPU only: leave it out, or use "
        "device='cpu'");
  }
  kv_ = options;
}

KvCache Backbone::make_cache(int batch, int capacity, mx::Stream s) const {
  KvCache cache;
  auto [shape, dtype] =
      ops::cache_shape({batch, heads_, capacity, kHeadDim}, dtype_, kv_.bits);
  for (size_t i = 0; i < layers_.size(); ++i) {
    cache.layers.push_back(
        {ops::make_cache(shape, dtype, s), ops::make_cache(shape, dtype, s)});
  }
  return cache;
}

size_t Backbone::position_bytes() const {
  auto [shape, dtype] =
      ops::cache_shape({1, heads_, 1, kHeadDim}, dtype_, kv_.bits);
  size_t bytes = mx::size_of(dtype);
  for (int size : shape) {
    bytes *= size;
  }
  return 2 * layers_.size() * bytes; // keys and values
}

KvCache Backbone::fork(
    const KvCache& prefix,
    int batch,
    int capacity,
    mx::Stream s) const {
  KvCache cache;
  cache.length = prefix.length;
  auto forked = [&](const mx::array& one) {
    return ops::fork_cache(one, {prefix.length, batch, capacity}, s);
  };
  for (const auto& layer : prefix.layers) {
    cache.layers.push_back({forked(layer.keys), forked(layer.values)});
    if (kv_.budget > 0.0f) {
      cache.layers.back().eviction = ops::Eviction{
          mx::zeros({batch, heads_}, mx::int32, s),
          ops::make_cache({batch, heads_, capacity}, mx::float32, s),
          kv_.budget};
    }
  }
  return cache;
}

ops::AttentionWatch Backbone::watch_for(int layer, const TextAttention* text)
    const {
  if (!text) {
    return {};
  }
  ops::AttentionWatch watch{{}, text->rows, text->begin, text->count};
  for (auto [at, head] : text->heads ? *text->heads : alignment_heads_) {
    if (at == layer) {
      watch.heads.push_back(head);
    }
  }
  return watch;
}

mx::array Backbone::forward(
    const mx::array& x,
    KvCache& cache,
    TextAttention* text_attention,
    mx::Stream s) const {
  for (auto& layer : cache.layers) {
    // What is output first is the prompt, which is kept.
    if (layer.eviction && layer.eviction->kept == 0) {
      layer.eviction->kept = cache.length + x.shape(1);
    }
  }
  std::vector<int> all(layers_.size());
  std::iota(all.begin(), all.end(), 0);
  return forward_layers(x, cache, all, text_attention, s);
}

mx::array Backbone::forward_layers(
    const mx::array& x,
    KvCache& cache,
    const std::vector<int>& layers,
    TextAttention* text_attention,
    mx::Stream s) const {
  check_room(cache, x.shape(1));
  std::vector<ops::DecoderRun> runs;
  for (int i : layers) {
    runs.push_back(
        {&layers_[i], &cache.layers[i], watch_for(i, text_attention)});
  }
  auto out =
      ops::decoder_layers({x, std::move(runs), frequencies_, cache.length}, s);
  keep_weights(out.weights, text_attention);
  cache.length += x.shape(1);
  return out.x;
}

mx::array Backbone::forward_together(
    const std::vector<mx::array>& x,
    const std::vector<KvCache*>& caches,
    const std::vector<TextAttention*>& text_attention,
    mx::Stream s) const {
  std::vector<ops::DecoderInput> sequences;
  for (size_t u = 0; u < caches.size(); ++u) {
    check_room(*caches[u], 1);
    std::vector<ops::DecoderRun> runs;
    for (size_t i = 0; i < layers_.size(); ++i) {
      runs.push_back(
          {&layers_[i],
           &caches[u]->layers[i],
           watch_for(i, text_attention[u])});
    }
    sequences.push_back(
        {x[u], std::move(runs), frequencies_, caches[u]->length});
  }
  auto out = ops::decoder_steps(sequences, s);
  for (size_t u = 0; u < caches.size(); ++u) {
    keep_weights(out.weights[u], text_attention[u]);
    ++caches[u]->length;
  }
  return out.x;
}

mx::array Backbone::read_out(
    const mx::array& x,
    const ops::Projection& head,
    mx::Stream s) const {
  return ops::norm_linear(x, norm_, head.w, {.bias = head.b}, s);
}

size_t Backbone::step_bytes() const {
  size_t total = 0;
  for (const auto& layer : layers_) {
    for (const auto* each : {&layer.qkv, &layer.out, &layer.up, &layer.down}) {
      total += each->w.nbytes();
    }
  }
  return total;
}

} // namespace nightingale
