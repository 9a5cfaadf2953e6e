#include <algorithm>

#include "nightingale/ops/cpu/attention_tile.h"
#include "nightingale/ops/cpu/evicting_attention.h"
#include "nightingale/ops/cpu/eviction.h"
#include "nightingale/ops/cpu/ops.h"
#include "nightingale/ops/cpu/primitive.h"
#include "nightingale/ops/cpu/rotary_angles.h"
#include "nightingale/ops/cpu/scratch.h"
#include "nightingale/ops/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct Angles;
struct RotatedHead;

// What one head of one batch row needs: its place in qkv and in the caches.
struct Head {
  const mx::array& qkv; // [B, T, 3 * heads * depth]
  int b;
  int head;
  CacheRows cache;
  char* keys; // of this head: `capacity` vectors
  char* values;
  int place; // where the new positions go
  const float* angles; // [T, depth]: cosines, then sines

  const float* row(int t, int part) const {
    int heads = qkv.shape(2) / 3 / cache.depth;
    return row_of<float>(qkv, b, t) + (part * heads + head) * cache.depth;
  }
};

// Turns the head's queries into `queries` and its keys into the cache, and
// writes its values beside them.
void rotate_and_write(const Head& h, float* queries, float* turned) {
  int depth = h.cache.depth, half = depth / 2;
  for (int t = 0; t < h.qkv.shape(1); ++t) {
    const float* cosine = h.angles + t * depth;
    const float* sine = cosine + half;
    rotate_head(h.row(t, 0), cosine, sine, half, queries + t * depth);
    rotate_head(h.row(t, 1), cosine, sine, half, turned);
    int64_t at = (h.place + t) * h.cache.bytes;
    h.cache.pack(turned, h.keys + at);
    h.cache.pack(h.row(t, 2), h.values + at);
  }
}

// The attention of a layer, of which heads may have dropped positions.
struct LayerAttention {
  int past;
  const ops::AttentionWatch& watch;
  const mx::array& qkv;
  const mx::array& frequencies;
  mx::array& out;
  mx::array& keys;
  mx::array& values;
  mx::array* weights; // of each watched head
  int* dropped = nullptr; // [B, heads]
  float* mass = nullptr; // [B, heads, capacity]

  void run() {
    int batch = qkv.shape(0), length = qkv.shape(1), heads = keys.shape(1);
    int depth = out.shape(2) / heads, half = depth / 2;
    float* angles = scratch<Angles>(int64_t(length) * depth);
    parallel_for(length, [&](int t) {
      float* cosine = angles + t * depth;
      rotary_angles(
          frequencies.data<float>(), half, past + t, cosine, cosine + half);
    });
    auto rows = CacheRows::of(keys, depth);
    parallel_for(batch * heads, [&](int tile) {
      run_head(tile / heads, tile % heads, rows, angles);
    });
  }

  void run_head(int b, int head, const CacheRows& rows, const float* angles) {
    int length = qkv.shape(1), heads = keys.shape(1), depth = rows.depth;
    int64_t tile = int64_t(b) * heads + head;
    int place = past - (dropped ? dropped[tile] : 0);
    Head h{
        qkv,
        b,
        head,
        rows,
        head_rows(keys, b, head),
        head_rows(values, b, head),
        place,
        angles};
    float* queries = scratch<RotatedHead>(int64_t(length + 1) * depth);
    rotate_and_write(h, queries, queries + int64_t(length) * depth);
    Attention a{
        .q = queries,
        .q_stride = depth,
        .rows = length,
        .cache = rows,
        .k = h.keys,
        .v = h.values,
        .visible = place + 1,
        .out = out.data<float>() + int64_t(b) * length * out.shape(2) +
            head * depth,
        .out_stride = out.shape(2)};
    if (mass) {
      a.mass = mass + tile * keys.shape(2);
      std::fill_n(a.mass + place, length, 0.0f);
    }
    for (int begin = 0; begin < length; begin += kQueryRows) {
      attend(a, begin, std::min(length, begin + kQueryRows));
    }
    for (size_t i = 0; i < watch.heads.size(); ++i) {
      if (b == 0 && watch.heads[i] == head) {
        float* y = weights[i].data<float>();
        weigh_span(a, watch.rows, watch.begin, watch.count, y);
      }
    }
  }

  void drop(float budget, int kept) {
    int batch = qkv.shape(0), length = past + qkv.shape(1);
    int heads = keys.shape(1), capacity = keys.shape(2);
    int64_t bytes = CacheRows::of(keys, out.shape(2) / heads).bytes;
    parallel_for(batch, [&](int b) {
      std::vector<EvictedHead> all;
      for (int head = 0; head < heads; ++head) {
        int tile = b * heads + head;
        all.push_back(
            {head_rows(keys, b, head),
             head_rows(values, b, head),
             bytes,
             mass + int64_t(tile) * capacity,
             length - dropped[tile]});
      }
      auto more = evict(all, kept, length, budget);
      for (int head = 0; head < heads; ++head) {
        dropped[b * heads + head] += more[head];
      }
    });
  }
};

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

LayerAttention layer_attention(
    int past,
    const ops::AttentionWatch& watch,
    const Arrays& in,
    Arrays& out) {
  return {past, watch, in[0], in[3], out[0], out[1], out[2], out.data() + 3};
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
        layer_attention(past, watch, in, out).run();
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
        auto layer = layer_attention(past, watch, in, out);
        layer.dropped = out[out.size() - 2].data<int>();
        layer.mass = out.back().data<float>();
        layer.run();
        if (evicts(past, past + layer.qkv.shape(1), kept)) {
          layer.drop(budget, kept);
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
