#include <vector>

#include "nightingale/backends/cpu/evicting_attention.h"
#include "nightingale/backends/cpu/eviction.h"
#include "nightingale/backends/cpu/layer_attention.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

// Runs all heads and returns what they ran with.
LayerAttention attend_heads(
    int past,
    const ops::AttentionWatch& watch,
    const Arrays& in,
    Arrays& out) {
  int batch = in[0].shape(0), length = in[0].shape(1);
  int heads = out[1].shape(1);
  LayerAttention layer{
      .length = length,
      .past = past,
      .heads = heads,
      .capacity = out[1].shape(2),
      .watch = watch,
      .rows = CacheRows::of(out[1], out[0].shape(2) / heads),
      .qkv = in[0].data<float>(),
      .angles = angles_from(in[3], past, length),
      .keys = out[1].data<char>(),
      .values = out[2].data<char>(),
      .out = out[0].data<float>(),
      .weights = out.data() + 3};
  if (in.size() > 4) { // an eviction's
    layer.dropped = out[out.size() - 2].data<int>();
    layer.mass = out.back().data<float>();
  }
  parallel_for(batch * heads, [&](int tile) {
    layer.run_head(tile / heads, tile % heads);
  });
  return layer;
}

void drop(const LayerAttention& layer, int batch, float budget, int kept) {
  int length = layer.past + layer.length;
  parallel_for(batch, [&](int b) {
    std::vector<EvictedHead> all;
    for (int head = 0; head < layer.heads; ++head) {
      int tile = b * layer.heads + head;
      all.push_back(
          {layer.head_rows(layer.keys, b, head),
           layer.head_rows(layer.values, b, head),
           layer.rows.bytes,
           layer.mass + int64_t(tile) * layer.capacity,
           length - layer.dropped[tile]});
    }
    auto more = evict(all, kept, length, budget);
    for (int head = 0; head < layer.heads; ++head) {
      layer.dropped[b * layer.heads + head] += more[head];
    }
  });
}

// What both ops give first: the result, the caches, the watched weights.
std::vector<Output> outputs_of(
    const mx::array& qkv,
    const mx::array& keys,
    const mx::array& values,
    const ops::AttentionWatch& watch) {
  check_caches(keys, values);
  std::vector<Output> outputs{
      {{qkv.shape(0), qkv.shape(1), qkv.shape(2) / 3}},
      {keys.shape(), keys.dtype(), 1},
      {values.shape(), values.dtype(), 2}};
  for (size_t i = 0; i < watch.heads.size(); ++i) {
    outputs.push_back({{watch.rows, watch.count}});
  }
  return outputs;
}

} // namespace

ops::SelfAttention self_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const mx::array& keys,
    const mx::array& values,
    int past,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  auto made = make_ops(
      "SelfAttention",
      outputs_of(qkv, keys, values, watch),
      {as_float(qkv, s),
       dense(keys, s),
       dense(values, s),
       as_float(frequencies, s)},
      [=](const Arrays& in, Arrays& out) {
        attend_heads(past, watch, in, out);
      },
      s);
  return {made[0], made[1], made[2], Arrays(made.begin() + 3, made.end())};
}

EvictingAttention evicting_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const ops::LayerCache& cache,
    int past,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  const auto& eviction = *cache.eviction;
  float budget = eviction.budget;
  int kept = eviction.kept;
  auto outputs = outputs_of(qkv, cache.keys, cache.values, watch);
  outputs.push_back({eviction.dropped.shape(), mx::int32, 4});
  outputs.push_back({eviction.mass.shape(), mx::float32, 5});
  auto made = make_ops(
      "EvictingAttention",
      std::move(outputs),
      {as_float(qkv, s),
       dense(cache.keys, s),
       dense(cache.values, s),
       as_float(frequencies, s),
       dense(eviction.dropped, s),
       dense(eviction.mass, s)},
      [=](const Arrays& in, Arrays& out) {
        auto layer = attend_heads(past, watch, in, out);
        if (evicts(past, past + layer.length, kept)) {
          drop(layer, in[0].shape(0), budget, kept);
        }
      },
      s);
  return {
      made[0],
      {made[1],
       made[2],
       std::nullopt,
       ops::Eviction{made[made.size() - 2], made.back(), budget, kept}},
      Arrays(made.begin() + 3, made.end() - 2)};
}

} // namespace nightingale::cpu
