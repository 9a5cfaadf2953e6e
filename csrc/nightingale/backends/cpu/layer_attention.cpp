#include "nightingale/backends/cpu/layer_attention.h"

#include <algorithm>

#include "nightingale/backends/cpu/attention_tile.h"
#include "nightingale/backends/cpu/rotary_angles.h"
#include "nightingale/backends/cpu/scratch.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct Angles;
struct RotatedHead;

// What one head of one batch row needs: its place in qkv and in the caches.
struct Head {
  const LayerAttention& layer;
  int b;
  int head;
  char* keys; // of this head: `capacity` vectors
  char* values;
  int place; // where the new positions go

  const float* row(int t, int part) const {
    int64_t at = int64_t(b) * layer.length + t;
    int depth = layer.rows.depth;
    return layer.qkv + ((3 * at + part) * layer.heads + head) * depth;
  }
};

// Turns the head's queries into `queries` and its keys into the cache, and
// writes its values beside them.
void rotate_and_write(const Head& h, float* queries, float* turned) {
  const CacheRows& cache = h.layer.rows;
  int depth = cache.depth, half = depth / 2;
  for (int t = 0; t < h.layer.length; ++t) {
    const float* cosine = h.layer.angles + t * depth;
    const float* sine = cosine + half;
    rotate_head(h.row(t, 0), cosine, sine, half, queries + t * depth);
    rotate_head(h.row(t, 1), cosine, sine, half, turned);
    int64_t at = (h.place + t) * cache.bytes;
    cache.pack(turned, h.keys + at);
    cache.pack(h.row(t, 2), h.values + at);
  }
}

} // namespace

void LayerAttention::run_head(int b, int head) const {
  int depth = rows.depth;
  int64_t width = int64_t(heads) * depth, tile = int64_t(b) * heads + head;
  int place = past - (dropped ? dropped[tile] : 0);
  Head h{
      *this,
      b,
      head,
      head_rows(keys, b, head),
      head_rows(values, b, head),
      place};
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
      .out = out + b * length * width + head * depth,
      .out_stride = width};
  if (mass) {
    a.mass = mass + tile * capacity;
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

const float* angles_from(const mx::array& frequencies, int past, int length) {
  int half = frequencies.size(), depth = 2 * half;
  float* angles = scratch<Angles>(int64_t(length) * depth);
  parallel_for(length, [&](int t) {
    float* cosine = angles + int64_t(t) * depth;
    rotary_angles(
        frequencies.data<float>(), half, past + t, cosine, cosine + half);
  });
  return angles;
}

} // namespace nightingale::cpu
