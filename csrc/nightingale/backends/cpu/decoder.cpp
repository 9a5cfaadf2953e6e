#include <algorithm>
#include <optional>

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

// What is known of a layer before its arrays are.
struct LayerPlan {
  NormPlan attention_norm;
  ProjectionPlan qkv, out;
  NormPlan ffn_norm;
  ProjectionPlan up, down;
  std::optional<Curve> curve; // none: swiglu
  InputIndex keys, values;
  ops::AttentionWatch watch;
};

// Appends the arrays of layers to an op's inputs. The first input is not one of
// them.
class LayerPlanner {
 public:
  LayerPlanner(Arrays& inputs, mx::Stream s) : inputs_(inputs), stream_(s) {}

  LayerPlan plan(const ops::DecoderRun& run) {
    const auto& layer = *run.layer;
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
        .keys = add(dense(run.cache->keys, stream_)),
        .values = add(dense(run.cache->values, stream_)),
        .watch = run.watch};
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

// Some positions on their way through the layers.
struct Positions {
  int batch;
  int length;
  int past;
  int hidden;
  const float* angles; // or null
  float* x; // [batch * length, hidden], which every layer adds to
  const Arrays& in; // of the op

  int rows() const {
    return batch * length;
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

  void attend(const LayerPlan& plan, mx::array* weights) const {
    int columns = plan.qkv.size.columns;
    float* qkv = scratch<Projected>(int64_t(rows()) * columns);
    EpilogueWriter projected;
    projected.bias = floats(plan.qkv.b);
    projected.y = qkv;
    projected.stride = columns;
    multiply(normed(plan.attention_norm), 0, matrix(plan.qkv), projected);

    mx::array keys = in[plan.keys], values = in[plan.values];
    int heads = keys.shape(1);
    float* attended = scratch<Attended>(int64_t(rows()) * hidden);
    LayerAttention attention{
        .length = length,
        .past = past,
        .heads = heads,
        .capacity = keys.shape(2),
        .watch = plan.watch,
        .rows = CacheRows::of(keys, kQuantizedGroup),
        .qkv = qkv,
        .angles = angles,
        .keys = keys.data<char>(),
        .values = values.data<char>(),
        .out = attended,
        .weights = weights};
    // A head is as wide as a group: it is turned into integers while it is
    // near.
    IntegerRows<AttendedIntegers> integers(rows(), heads, kRowBits);
    parallel_for(batch * heads, [&](int tile) {
      int b = tile / heads, head = tile % heads;
      attention.run_head(b, head);
      for (int row = b * length; row < (b + 1) * length; ++row) {
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

bool takes(const ops::DecoderRun& run, int hidden) {
  const auto& layer = *run.layer;
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
      fits(layer.down, hidden, ffn) && !run.cache->eviction &&
      run.cache->keys.shape(1) * kQuantizedGroup == hidden;
}

} // namespace

bool fits_fused_decoder(const ops::DecoderInput& in) {
  const auto& x = in.x;
  return x.shape(1) <= kDotRows && row_count(x) <= kMostRows &&
      std::ranges::all_of(in.runs, [&](const ops::DecoderRun& run) {
           return takes(run, x.shape(2));
         });
}

namespace {

ops::DecoderOutput fused_decoder_layers(
    const ops::DecoderInput& input,
    mx::Stream s) {
  const auto& runs = input.runs;
  Arrays inputs{as_float(input.x, s)};
  InputIndex frequencies = 0;
  if (input.frequencies) {
    frequencies = 1;
    inputs.push_back(as_float(*input.frequencies, s));
  }
  std::vector<Output> outputs{{input.x.shape()}};
  std::vector<LayerPlan> plans;
  LayerPlanner planner(inputs, s);
  for (const auto& run : runs) {
    check_caches(run.cache->keys, run.cache->values);
    plans.push_back(planner.plan(run));
    for (size_t i = 0; i < run.watch.heads.size(); ++i) {
      outputs.push_back({{run.watch.rows, run.watch.count}});
    }
  }
  for (const auto& run : runs) {
    const auto& written = run.cache->written;
    if (written && written->id() != inputs.back().id()) {
      inputs.push_back(*written);
    }
  }
  auto made = make_ops(
      "DecoderLayers",
      std::move(outputs),
      std::move(inputs),
      [past = input.past, frequencies, plans = std::move(plans)](
          const Arrays& in, Arrays& out) {
        int length = in[0].shape(1);
        Positions positions{
            .batch = in[0].shape(0),
            .length = length,
            .past = past,
            .hidden = in[0].shape(2),
            .angles = frequencies ? angles_from(in[frequencies], past, length)
                                  : nullptr,
            .x = out[0].data<float>(),
            .in = in};
        std::copy_n(in[0].data<float>(), in[0].size(), positions.x);
        mx::array* watched = out.data() + 1;
        for (const auto& plan : plans) {
          positions.attend(plan, watched);
          positions.feed_forward(plan);
          watched += plan.watch.heads.size();
        }
      },
      s);
  for (const auto& run : runs) {
    run.cache->written = made[0];
  }
  return {made[0], Arrays(made.begin() + 1, made.end())};
}

} // namespace

ops::DecoderOutput decoder_layers(const ops::DecoderInput& in, mx::Stream s) {
  return fits_fused_decoder(in) ? fused_decoder_layers(in, s)
                                : backends::decoder_layers(in, s);
}

} // namespace nightingale::cpu
