#include <algorithm>
#include <cstring>

#include "mlx/transforms.h"
#include "nightingale/backends/cpu/attention_heads.h"
#include "nightingale/backends/cpu/eviction.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/memory.h"

namespace nightingale::cpu {

namespace {

// Spreads blocks of query rows of every head over the threads.
template <typename HeadOf>
void attend_blocks(int batch, int heads, int rows, HeadOf head_of) {
  int block = rows > kDotRows ? kQueryRows : 1;
  int blocks = (rows + block - 1) / block;
  parallel_for(batch * heads * blocks, [&](int tile) {
    int begin = tile % blocks * block;
    int head = tile / blocks % heads, b = tile / blocks / heads;
    attend(head_of(b, head), begin, std::min(rows, begin + block));
  });
}

// Head `head` of batch row `b` over a row-major cache.
Attention cached_head(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int b,
    int head) {
  int depth = q.shape(2) / keys.shape(1);
  return {
      .q = row_of<float>(q, b, 0) + head * depth,
      .q_stride = q.strides(1),
      .rows = q.shape(1),
      .cache = CacheRows::of(keys, depth),
      .k = head_rows(keys, b, head),
      .visible = past + 1};
}

} // namespace

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream) {
  size_t count = 1;
  for (int size : shape) {
    count *= size;
  }
  return mx::array(allocate(count * mx::size_of(dtype)), shape, dtype);
}

mx::array
fork_cache(const mx::array& prefix, const ops::CacheFork& fork, mx::Stream s) {
  int length = fork.length, batch = fork.batch, capacity = fork.capacity;
  int heads = prefix.shape(1), depth = prefix.shape(3);
  return make_op(
      "ForkCache",
      {{batch, heads, capacity, depth}, prefix.dtype()},
      {dense(prefix, s)},
      [=](const Arrays& in, Arrays& out) {
        int64_t row_bytes = depth * in[0].itemsize();
        for (int i = 0; i < batch * heads; ++i) {
          std::memcpy(
              out[0].data<char>() + i * capacity * row_bytes,
              in[0].data<char>() + i % heads * in[0].shape(2) * row_bytes,
              length * row_bytes);
        }
      },
      s);
}

mx::array write_heads(
    const mx::array& cache,
    const mx::array& x,
    int past,
    mx::Stream s) {
  return make_op(
      "WriteHeads",
      {cache.shape(), cache.dtype(), 0},
      {dense(cache, s), as_rows(x, s)},
      [past](const Arrays& in, Arrays& out) {
        const auto& x = in[1];
        int heads = in[0].shape(1), depth = x.shape(2) / heads;
        auto rows = CacheRows::of(in[0], depth);
        for (int b = 0; b < x.shape(0); ++b) {
          for (int t = 0; t < x.shape(1); ++t) {
            const float* row = row_of<float>(x, b, t);
            for (int head = 0; head < heads; ++head) {
              char* to = head_rows(out[0], b, head) + (past + t) * rows.bytes;
              rows.pack(row + head * depth, to);
            }
          }
        }
      },
      s);
}

mx::array cached_attention(
    const ops::CachedQueries& queries,
    const ops::LayerCache& cache,
    mx::Stream s) {
  check_caches(cache.keys, cache.values);
  return make_op(
      "CachedAttention",
      {queries.q.shape()},
      {as_float(queries.q, s), dense(cache.keys, s), dense(cache.values, s)},
      [past = queries.past](const Arrays& in, Arrays& out) {
        const auto &q = in[0], &keys = in[1], &values = in[2];
        int rows = q.shape(1), heads = keys.shape(1);
        attend_blocks(q.shape(0), heads, rows, [&](int b, int head) {
          Attention a = cached_head(q, keys, past, b, head);
          a.v = head_rows(values, b, head);
          a.out = out[0].data<float>() + int64_t(b) * rows * q.shape(2) +
              head * a.cache.depth;
          a.out_stride = q.shape(2);
          return a;
        });
      },
      s);
}

std::vector<mx::array> attention_weights(
    const ops::CachedQueries& queries,
    const mx::array& keys,
    const ops::AttentionWatch& watch,
    mx::Stream s) {
  std::vector<Output> outputs;
  for (size_t i = 0; i < watch.heads.size(); ++i) {
    outputs.push_back({{watch.rows, watch.count}});
  }
  return make_ops(
      "AttentionWeights",
      std::move(outputs),
      {as_float(queries.q, s), dense(keys, s)},
      [watch, past = queries.past](const Arrays& in, Arrays& out) {
        for (size_t i = 0; i < watch.heads.size(); ++i) {
          Attention a = cached_head(in[0], in[1], past, 0, watch.heads[i]);
          float* y = out[i].data<float>();
          weigh_span(a, watch.rows, watch.begin, watch.count, y);
        }
      },
      s);
}

namespace {

// What is known of an attention before its arrays are.
struct AttentionPlan {
  int past;
  bool rotates;
  ops::AttentionWatch watch;

  explicit AttentionPlan(const ops::AttentionInput& in)
      : past(in.past), rotates(in.frequencies), watch(in.watch) {}
};

// The inputs of its op: qkv, caches, frequencies or something in their place.
Arrays inputs_of(const ops::AttentionInput& in, mx::Stream s) {
  auto qkv = as_float(in.qkv, s);
  return {
      qkv,
      dense(in.cache.keys, s),
      dense(in.cache.values, s),
      in.frequencies ? as_float(*in.frequencies, s) : qkv};
}

// Runs all heads and returns what they ran with.
LayerAttention
attend_heads(const AttentionPlan& plan, const Arrays& in, Arrays& out) {
  int past = plan.past;
  int batch = in[0].shape(0), length = in[0].shape(1);
  int heads = out[1].shape(1);
  LayerAttention layer{
      .length = length,
      .past = past,
      .heads = heads,
      .capacity = out[1].shape(2),
      .watch = plan.watch,
      .rows = CacheRows::of(out[1], out[0].shape(2) / heads),
      .qkv = in[0].data<float>(),
      .angles = plan.rotates ? angles_from(in[3], past, length) : nullptr,
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

// The result, the caches, the watched weights.
std::vector<Output> outputs_of(const ops::AttentionInput& input) {
  const auto &qkv = input.qkv, &keys = input.cache.keys;
  const auto& values = input.cache.values;
  const auto& watch = input.watch;
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

// Gives the weights that follow the first outputs, up to `end`.
ops::SelfAttention
result_of(const Arrays& made, ops::LayerCache cache, size_t end) {
  return {
      made[0], std::move(cache), Arrays(made.begin() + 3, made.begin() + end)};
}

ops::SelfAttention evicting_attention(
    const ops::AttentionInput& input,
    mx::Stream s) {
  const auto& [dropped, mass, budget, kept] = *input.cache.eviction;
  auto outputs = outputs_of(input);
  outputs.push_back({dropped.shape(), mx::int32, 4});
  outputs.push_back({mass.shape(), mx::float32, 5});
  auto inputs = inputs_of(input, s);
  inputs.insert(inputs.end(), {dense(dropped, s), dense(mass, s)});
  auto made = make_ops(
      "EvictingAttention",
      std::move(outputs),
      std::move(inputs),
      [plan = AttentionPlan(input), budget = budget, kept = kept](
          const Arrays& in, Arrays& out) {
        auto layer = attend_heads(plan, in, out);
        if (evicts(plan.past, plan.past + layer.length, kept)) {
          drop(layer, in[0].shape(0), budget, kept);
        }
      },
      s);
  size_t end = made.size() - 2;
  ops::Eviction eviction{made[end], made.back(), budget, kept};
  return result_of(made, {made[1], made[2], std::nullopt, eviction}, end);
}

} // namespace

ops::SelfAttention self_attention(
    const ops::AttentionInput& input,
    mx::Stream s) {
  if (input.cache.eviction) {
    return evicting_attention(input, s);
  }
  if (input.cache.written) {
    mx::eval(*input.cache.written); // writes in place are not in the graph
  }
  auto made = make_ops(
      "SelfAttention",
      outputs_of(input),
      inputs_of(input, s),
      [plan = AttentionPlan(input)](const Arrays& in, Arrays& out) {
        attend_heads(plan, in, out);
      },
      s);
  return result_of(made, {made[1], made[2]}, made.size());
}

} // namespace nightingale::cpu
