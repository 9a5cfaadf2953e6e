#include <algorithm>

#include "nightingale/error.h"
#include "nightingale/ops/cpu/attention_tile.h"
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
  int depth;
  char* keys; // of this head: [capacity, depth]
  char* values;
  Storage storage;
  int past;
  const float* angles; // [T, depth]: cosines, then sines

  const float* row(int t, int part) const {
    int heads = qkv.shape(2) / 3 / depth;
    return row_of<float>(qkv, b, t) + (part * heads + head) * depth;
  }
};

// Turns the head's queries into `queries` and its keys into the cache, and
// writes its values beside them.
void rotate_and_write(const Head& h, float* queries, float* turned) {
  auto pack = simd().pack[static_cast<int>(h.storage)];
  int half = h.depth / 2;
  int64_t row_bytes = h.depth * storage_bytes(h.storage);
  for (int t = 0; t < h.qkv.shape(1); ++t) {
    const float* cosine = h.angles + t * h.depth;
    const float* sine = cosine + half;
    rotate_head(h.row(t, 0), cosine, sine, half, queries + t * h.depth);
    rotate_head(h.row(t, 1), cosine, sine, half, turned);
    pack(turned, h.depth, h.keys + (h.past + t) * row_bytes);
    pack(h.row(t, 2), h.depth, h.values + (h.past + t) * row_bytes);
  }
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
  if (keys.dtype() != values.dtype()) {
    throw Error("the caches of keys and values must be of one type");
  }
  int batch = qkv.shape(0), length = qkv.shape(1), channels = qkv.shape(2) / 3;
  std::vector<Output> outputs{
      {{batch, length, channels}},
      {keys.shape(), keys.dtype(), 1},
      {values.shape(), values.dtype(), 2}};
  for (size_t i = 0; i < watch.heads.size(); ++i) {
    outputs.push_back({{watch.rows, watch.count}});
  }
  auto work = [=](const Arrays& in, Arrays& out) {
    int heads = out[1].shape(1), capacity = out[1].shape(2);
    int depth = out[1].shape(3), half = depth / 2;
    Storage storage = storage_of(out[1]);
    int64_t head_bytes = int64_t(capacity) * depth * storage_bytes(storage);
    float* angles = scratch<Angles>(int64_t(length) * depth);
    parallel_for(length, [&](int t) {
      float* cosine = angles + t * depth;
      rotary_angles(in[3].data<float>(), half, past + t, cosine, cosine + half);
    });
    parallel_for(batch * heads, [&](int tile) {
      int b = tile / heads, head = tile % heads;
      Head h{
          in[0],
          b,
          head,
          depth,
          out[1].data<char>() + tile * head_bytes,
          out[2].data<char>() + tile * head_bytes,
          storage,
          past,
          angles};
      float* queries = scratch<RotatedHead>(int64_t(length + 1) * depth);
      rotate_and_write(h, queries, queries + int64_t(length) * depth);
      Attention a;
      a.q = queries;
      a.q_stride = depth;
      a.rows = length;
      a.k = h.keys;
      a.v = h.values;
      a.kv_stride = depth;
      a.storage = storage;
      a.visible = past + 1;
      a.causal = true;
      a.depth = depth;
      a.out =
          out[0].data<float>() + int64_t(b) * length * channels + head * depth;
      a.out_stride = channels;
      for (int begin = 0; begin < length; begin += kQueryRows) {
        attend(a, begin, std::min(length, begin + kQueryRows));
      }
      for (size_t i = 0; i < watch.heads.size(); ++i) {
        if (b == 0 && watch.heads[i] == head) {
          weigh_span(
              a,
              watch.rows,
              watch.begin,
              watch.count,
              out[3 + i].data<float>());
        }
      }
    });
  };
  auto made = make_ops(
      "SelfAttention",
      std::move(outputs),
      {as_float(qkv, s),
       dense(keys, s),
       dense(values, s),
       as_float(frequencies, s)},
      work,
      s);
  return {made[0], made[1], made[2], Arrays(made.begin() + 3, made.end())};
}

} // namespace nightingale::cpu
