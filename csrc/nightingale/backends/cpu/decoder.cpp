#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "nightingale/backends/cpu/attention_heads.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/quantized_product.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct Normed;
struct NormedIntegers;
struct Projected;
struct Attended;
struct AttendedIntegers;
struct HiddenColumns;
struct HiddenIntegers;

constexpr int kRowBits = 16;

// As many as a round of speculation checks for both guidance rows.
constexpr int kMostRows = 2 * kDotRows;

struct QuantizedSize {
  int columns;
  int bits;

  explicit QuantizedSize(const ops::Matrix& w)
      : columns(w.rows()), bits(w.bits) {}

  PackedQuantized on(const mx::array& packed) const {
    return {packed, columns, bits};
  }
};

// Where among an op's inputs an array of floats is; 0: it has none.
using InputIndex = int;

// A quantized matrix and its bias.
struct ProjectionPlan {
  QuantizedSize size;
  InputIndex w, b;
};

struct NormPlan {
  InputIndex w, b; // with b it is a layer norm
  float eps;
};

// A sequence's part in a layer.
struct CachePlan {
  InputIndex keys, values;
  ops::AttentionWatch watch;
};

// What is known of a layer before its arrays are.
struct LayerPlan {
  NormPlan attention_norm;
  ProjectionPlan qkv, out;
  NormPlan ffn_norm;
  ProjectionPlan up, down;
  std::optional<Curve> curve; // none: swiglu
  std::vector<CachePlan> caches; // of each sequence
};

// Appends the arrays of layers to an op's inputs. The first input is not one of
// them.
class LayerPlanner {
 public:
  LayerPlanner(Arrays& inputs, mx::Stream s) : inputs_(inputs), stream_(s) {}

  LayerPlan plan(const ops::DecoderLayer& layer) {
    std::optional<Curve> curve;
    if (layer.activation) {
      curve = static_cast<Curve>(*layer.activation);
    }
    return {
        .attention_norm = norm(layer.attention_norm),
        .qkv = projection(layer.qkv),
        .out = projection(layer.out),
        .ffn_norm = norm(layer.ffn_norm),
        .up = projection(layer.up),
        .down = projection(layer.down),
        .curve = curve,
        .caches = {}};
  }

  CachePlan plan(const ops::DecoderRun& run) {
    const auto& [keys, values, written, eviction, step] = *run.cache;
    check_caches(keys, values);
    return {add(dense(keys, stream_)), add(dense(values, stream_)), run.watch};
  }

 private:
  InputIndex add(const mx::array& x) {
    inputs_.push_back(x);
    return static_cast<int>(inputs_.size()) - 1;
  }
  InputIndex add_floats(const std::optional<mx::array>& x) {
    return x ? add(as_float(*x, stream_)) : 0;
  }
  NormPlan norm(const ops::Norm& norm) {
    return {add_floats(norm.w), add_floats(norm.b), norm.eps};
  }
  ProjectionPlan projection(const ops::Projection& projection) {
    const auto& [w, b] = projection;
    return {QuantizedSize(w), add(w.w), add_floats(b)};
  }

  Arrays& inputs_;
  mx::Stream stream_;
};

// Some of its positions.
struct SequencePlan {
  int batch;
  int past;
};

// Some positions of each sequence on their way through the layers.
struct Positions {
  const std::vector<SequencePlan>& sequences;
  int batch; // of all sequences
  int length;
  int hidden;
  const float* angles; // or null
  float* x; // [batch * length, hidden], which every layer adds to
  const Arrays& in; // of the op

  int rows() const {
    return batch * length;
  }

  // Where the angles of a sequence begin.
  int64_t angles_begin(size_t sequence) const {
    return int64_t(sequence) * length * kQuantizedGroup;
  }

  const float* floats(InputIndex index) const {
    return index ? in[index].data<float>() : nullptr;
  }
  PackedQuantized matrix(const ProjectionPlan& plan) const {
    return plan.size.on(in[plan.w]);
  }

  // Adds the product, and its bias, to x.
  void add(const QuantizedRows& from, const ProjectionPlan& plan) const {
    EpilogueWriter f;
    f.bias = floats(plan.b);
    f.residual = x;
    f.y = x;
    f.stride = hidden;
    multiply(from, 0, matrix(plan), f);
  }

  QuantizedRows normed(const NormPlan& norm) const {
    const float *w = floats(norm.w), *b = floats(norm.b);
    IntegerRows<NormedIntegers> integers(
        rows(), hidden / kQuantizedGroup, kRowBits);
    for (int row = 0; row < rows(); ++row) {
      const float* from = x + int64_t(row) * hidden;
      float* y = scratch<Normed>(hidden);
      if (b) {
        simd().layer_norm(from, w, b, hidden, norm.eps, y);
      } else {
        simd().rms_norm(from, w, hidden, norm.eps, y);
      }
      integers.put(row, 0, integers.groups, y);
    }
    return integers.view();
  }

  // The attention of each sequence. weights: of the watched heads, sequence by
  // sequence
  std::vector<LayerAttention> attentions(
      const LayerPlan& plan,
      const float* qkv,
      float* attended,
      mx::array* weights) const {
    std::vector<LayerAttention> all;
    all.reserve(sequences.size());
    int64_t row = 0;
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto& [keys_index, values_index, watch] = plan.caches[i];
      mx::array keys = in[keys_index], values = in[values_index];
      all.push_back(
          {.length = length,
           .past = sequences[i].past,
           .heads = keys.shape(1),
           .capacity = keys.shape(2),
           .watch = watch,
           .rows = CacheRows::of(keys, kQuantizedGroup),
           .qkv = qkv + row * plan.qkv.size.columns,
           .angles = angles ? angles + angles_begin(i) : nullptr,
           .keys = keys.data<char>(),
           .values = values.data<char>(),
           .out = attended + row * hidden,
           .weights = weights});
      row += sequences[i].batch * length;
      weights += watch.heads.size();
    }
    return all;
  }

  void attend(const LayerPlan& plan, mx::array* weights) const {
    int columns = plan.qkv.size.columns;
    float* qkv = scratch<Projected>(int64_t(rows()) * columns);
    EpilogueWriter projected;
    projected.bias = floats(plan.qkv.b);
    projected.y = qkv;
    projected.stride = columns;
    multiply(normed(plan.attention_norm), 0, matrix(plan.qkv), projected);

    float* attended = scratch<Attended>(int64_t(rows()) * hidden);
    auto all = attentions(plan, qkv, attended, weights);
    int heads = all[0].heads;
    // A head is as wide as a group: it is turned into integers while it is
    // near.
    IntegerRows<AttendedIntegers> integers(rows(), heads, kRowBits);
    parallel_for(batch * heads, [&](int tile) {
      int head = tile % heads, first = tile / heads * length;
      int b = tile / heads; // in its sequence
      size_t i = 0;
      while (b >= sequences[i].batch) {
        b -= sequences[i++].batch;
      }
      all[i].run_head(b, head);
      for (int row = first; row < first + length; ++row) {
        int64_t at = int64_t(row) * heads + head;
        integers.put(row, head, 1, attended + at * kQuantizedGroup);
      }
    });
    add(integers.view(), plan.out);
  }

  // One group of columns of what is between the products: y [rows, group]
  void hidden_group(
      const LayerPlan& plan,
      const QuantizedRows& from,
      int group,
      float* y) const {
    PackedQuantized up = matrix(plan.up);
    if (!plan.curve) {
      constexpr int tiles = kQuantizedGroup / kQuantizedTile;
      for (int i = 0; i < tiles; ++i) {
        float* columns = y + i * kQuantizedTile;
        int tile = group * tiles + i;
        multiply_swiglu_tile(from, up, tile, columns, kQuantizedGroup);
      }
      return;
    }
    static_assert(kStripColumns == kQuantizedGroup);
    EpilogueWriter f;
    f.curve = *plan.curve;
    f.bias = plan.up.b ? floats(plan.up.b) + group * kQuantizedGroup : nullptr;
    f.y = y;
    f.stride = kQuantizedGroup;
    const float* sums = multiply_strip(from, up, group);
    f(sums, kStripColumns, 0, from.rows, 0, kQuantizedGroup);
  }

  void feed_forward(const LayerPlan& plan) const {
    QuantizedRows from = normed(plan.ffn_norm);
    int features = plan.up.size.columns / (plan.curve ? 1 : 2);
    IntegerRows<HiddenIntegers> integers(
        rows(), features / kQuantizedGroup, kRowBits);
    parallel_for(integers.groups, [&](int group) {
      float* columns =
          scratch<HiddenColumns>(int64_t(rows()) * kQuantizedGroup);
      hidden_group(plan, from, group, columns);
      for (int row = 0; row < rows(); ++row) {
        integers.put(row, group, 1, columns + row * kQuantizedGroup);
      }
    });
    add(integers.view(), plan.down);
  }
};

static_assert(kMostRows <= kStripRows);

bool takes(const ops::DecoderLayer& layer, int hidden) {
  for (const auto* each : {&layer.qkv, &layer.out, &layer.up, &layer.down}) {
    if (!each->w.is_packed() || each->w.row_bits != kRowBits) {
      return false;
    }
  }
  // What does not fit is reported by the ops that run layers one by one.
  auto fits = [](const ops::Projection& each, int rows, int columns) {
    return each.w.rows() == rows && each.w.columns() == columns &&
        (!each.b || static_cast<int>(each.b->size()) == rows);
  };
  int ffn = layer.down.w.columns(), up = layer.activation ? ffn : 2 * ffn;
  return fits(layer.qkv, 3 * hidden, hidden) &&
      fits(layer.out, hidden, hidden) && fits(layer.up, up, hidden) &&
      fits(layer.down, hidden, ffn);
}

// Sequences of one position each, or one alone.
using Sequences = std::span<const ops::DecoderInput>;

bool can_fuse(Sequences sequences) {
  const auto& x = sequences[0].x;
  int hidden = x.shape(2), rows = 0;
  for (const auto& each : sequences) {
    rows += row_count(each.x);
    for (const auto& run : each.runs) {
      if (run.cache->eviction ||
          run.cache->keys.shape(1) * kQuantizedGroup != hidden) {
        return false;
      }
    }
  }
  return x.shape(1) <= kDotRows && rows <= kMostRows &&
      std::ranges::all_of(sequences[0].runs, [&](const auto& run) {
           return takes(*run.layer, hidden);
         });
}

// The positions that the angles of `sequences` are of.
std::vector<int> positions_of(
    const std::vector<SequencePlan>& sequences,
    int length) {
  std::vector<int> positions;
  for (const auto& each : sequences) {
    for (int t = 0; t < length; ++t) {
      positions.push_back(each.past + t);
    }
  }
  return positions;
}

// The rows of all sequences in turn, after the layers, and the weights of the
// watched heads, layer by layer and in a layer sequence by sequence.
Arrays fused_decoder(Sequences sequences, mx::Stream s) {
  Arrays inputs;
  std::vector<SequencePlan> plans;
  int batch = 0, length = sequences[0].x.shape(1);
  for (const auto& each : sequences) {
    inputs.push_back(as_float(each.x, s));
    plans.push_back({each.x.shape(0), each.past});
    batch += each.x.shape(0);
  }
  InputIndex frequencies = 0;
  if (sequences[0].frequencies) {
    frequencies = static_cast<int>(inputs.size());
    inputs.push_back(as_float(*sequences[0].frequencies, s));
  }
  std::vector<Output> outputs{{{batch, length, sequences[0].x.shape(2)}}};
  std::vector<LayerPlan> layers;
  LayerPlanner planner(inputs, s);
  for (size_t i = 0; i < sequences[0].runs.size(); ++i) {
    layers.push_back(planner.plan(*sequences[0].runs[i].layer));
    for (const auto& each : sequences) {
      const auto& run = each.runs[i];
      layers.back().caches.push_back(planner.plan(run));
      for (size_t head = 0; head < run.watch.heads.size(); ++head) {
        outputs.push_back({{run.watch.rows, run.watch.count}});
      }
    }
  }
  for (const auto& each : sequences) {
    for (const auto& run : each.runs) {
      const auto& written = run.cache->written;
      if (written && written->id() != inputs.back().id()) {
        inputs.push_back(*written);
      }
    }
  }
  auto made = make_ops(
      "DecoderLayers",
      std::move(outputs),
      std::move(inputs),
      [frequencies, plans = std::move(plans), layers = std::move(layers)](
          const Arrays& in, Arrays& out) {
        int length = out[0].shape(1);
        const float* angles = nullptr;
        if (frequencies) {
          angles = angles_at(in[frequencies], positions_of(plans, length));
        }
        Positions positions{
            .sequences = plans,
            .batch = out[0].shape(0),
            .length = length,
            .hidden = out[0].shape(2),
            .angles = angles,
            .x = out[0].data<float>(),
            .in = in};
        float* x = positions.x;
        for (size_t i = 0; i < plans.size(); ++i) {
          x = std::copy_n(in[i].data<float>(), in[i].size(), x);
        }
        mx::array* watched = out.data() + 1;
        for (const auto& layer : layers) {
          positions.attend(layer, watched);
          positions.feed_forward(layer);
          for (const auto& each : layer.caches) {
            watched += each.watch.heads.size();
          }
        }
      },
      s);
  for (const auto& each : sequences) {
    for (const auto& run : each.runs) {
      run.cache->written = made[0];
    }
  }
  return made;
}

} // namespace

bool fits_fused_decoder(const ops::DecoderInput& in) {
  return can_fuse(Sequences(&in, 1));
}

ops::DecoderOutput decoder_layers(const ops::DecoderInput& in, mx::Stream s) {
  Sequences alone(&in, 1);
  if (!can_fuse(alone)) {
    return backends::decoder_layers(in, s);
  }
  auto made = fused_decoder(alone, s);
  return {made[0], Arrays(made.begin() + 1, made.end())};
}

ops::DecoderSteps decoder_steps(
    const std::vector<ops::DecoderInput>& sequences,
    mx::Stream s) {
  if (!can_fuse(sequences)) {
    return backends::decoder_steps(sequences, s);
  }
  auto made = fused_decoder(sequences, s);
  ops::DecoderSteps out{made[0], {}};
  out.weights.resize(sequences.size());
  auto next = made.begin() + 1;
  for (size_t i = 0; i < sequences[0].runs.size(); ++i) {
    for (size_t u = 0; u < sequences.size(); ++u) {
      int heads = sequences[u].runs[i].watch.heads.size();
      out.weights[u].insert(out.weights[u].end(), next, next + heads);
      next += heads;
    }
  }
  return out;
}

} // namespace nightingale::cpu
