#include <algorithm>

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
struct GatedColumns;
struct GatedIntegers;

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

// What is known of a layer before its arrays are.
struct LayerPlan {
  QuantizedSize qkv, out, gate_up, down;
  ops::AttentionWatch watch;
};

// The arrays of a layer, in this order among an op's inputs.
struct LayerArrays {
  enum {
    attention_norm,
    qkv,
    out,
    ffn_norm,
    gate_up,
    down,
    keys,
    values,
    count
  };

  static void add(const ops::DecoderRun& run, Arrays& inputs, mx::Stream s) {
    const auto& layer = *run.layer;
    inputs.insert(
        inputs.end(),
        {as_float(layer.attention_norm, s),
         layer.qkv.w,
         layer.out.w,
         as_float(layer.ffn_norm, s),
         layer.gate_up.w,
         layer.down.w,
         dense(run.cache->keys, s),
         dense(run.cache->values, s)});
  }
};

// Some positions on their way through the layers.
struct Positions {
  int batch;
  int length;
  int past;
  int hidden;
  float eps;
  const float* angles;
  float* x; // [batch * length, hidden], which every layer adds to

  int rows() const {
    return batch * length;
  }

  // What is added to x.
  EpilogueWriter added() const {
    EpilogueWriter f;
    f.residual = x;
    f.y = x;
    f.stride = hidden;
    return f;
  }

  QuantizedRows normed(const mx::array& norm) const {
    IntegerRows<NormedIntegers> integers(rows(), hidden / kQuantizedGroup);
    for (int row = 0; row < rows(); ++row) {
      float* y = scratch<Normed>(hidden);
      simd().rms_norm(
          x + int64_t(row) * hidden, norm.data<float>(), hidden, eps, y);
      integers.put(row, 0, integers.groups, y);
    }
    return integers.view();
  }

  void attend(const LayerPlan& plan, const mx::array* in, mx::array* weights)
      const {
    float* qkv = scratch<Projected>(int64_t(rows()) * plan.qkv.columns);
    EpilogueWriter projected;
    projected.y = qkv;
    projected.stride = plan.qkv.columns;
    multiply(
        normed(in[LayerArrays::attention_norm]),
        0,
        plan.qkv.on(in[LayerArrays::qkv]),
        projected);

    mx::array keys = in[LayerArrays::keys], values = in[LayerArrays::values];
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
    IntegerRows<AttendedIntegers> integers(rows(), heads);
    parallel_for(batch * heads, [&](int tile) {
      int b = tile / heads, head = tile % heads;
      attention.run_head(b, head);
      for (int row = b * length; row < (b + 1) * length; ++row) {
        int64_t at = int64_t(row) * heads + head;
        integers.put(row, head, 1, attended + at * kQuantizedGroup);
      }
    });
    multiply(integers.view(), 0, plan.out.on(in[LayerArrays::out]), added());
  }

  void feed_forward(const LayerPlan& plan, const mx::array* in) const {
    QuantizedRows normed_rows = normed(in[LayerArrays::ffn_norm]);
    PackedQuantized gate_up = plan.gate_up.on(in[LayerArrays::gate_up]);
    constexpr int tiles = kQuantizedGroup / kQuantizedTile;
    IntegerRows<GatedIntegers> integers(
        rows(), gate_up.columns / 2 / kQuantizedGroup);
    parallel_for(integers.groups, [&](int group) {
      float* gated = scratch<GatedColumns>(int64_t(rows()) * kQuantizedGroup);
      for (int i = 0; i < tiles; ++i) {
        multiply_swiglu_tile(
            normed_rows,
            gate_up,
            group * tiles + i,
            gated + i * kQuantizedTile,
            kQuantizedGroup);
      }
      for (int row = 0; row < rows(); ++row) {
        integers.put(row, group, 1, gated + row * kQuantizedGroup);
      }
    });
    multiply(integers.view(), 0, plan.down.on(in[LayerArrays::down]), added());
  }
};

bool takes(const ops::DecoderRun& run, int hidden) {
  const auto& layer = *run.layer;
  for (const auto* w : {&layer.qkv, &layer.out, &layer.gate_up, &layer.down}) {
    if (!w->is_packed()) {
      return false;
    }
  }
  // What does not fit is reported by the ops that run layers one by one.
  auto fits = [](const ops::Matrix& w, int rows, int columns) {
    return w.rows() == rows && w.columns() == columns;
  };
  int ffn = layer.down.columns();
  return fits(layer.qkv, 3 * hidden, hidden) &&
      fits(layer.out, hidden, hidden) && fits(layer.gate_up, 2 * ffn, hidden) &&
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
  Arrays inputs{as_float(input.x, s), as_float(input.frequencies, s)};
  constexpr int first_layer = 2;
  std::vector<Output> outputs{{input.x.shape()}};
  std::vector<LayerPlan> plans;
  for (const auto& run : runs) {
    const auto& layer = *run.layer;
    check_caches(run.cache->keys, run.cache->values);
    LayerArrays::add(run, inputs, s);
    plans.push_back(
        {QuantizedSize(layer.qkv),
         QuantizedSize(layer.out),
         QuantizedSize(layer.gate_up),
         QuantizedSize(layer.down),
         run.watch});
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
      [past = input.past, eps = input.eps, plans = std::move(plans)](
          const Arrays& in, Arrays& out) {
        Positions positions{
            .batch = in[0].shape(0),
            .length = in[0].shape(1),
            .past = past,
            .hidden = in[0].shape(2),
            .eps = eps,
            .angles = angles_from(in[1], past, in[0].shape(1)),
            .x = out[0].data<float>()};
        std::copy_n(in[0].data<float>(), in[0].size(), positions.x);
        const mx::array* arrays = in.data() + first_layer;
        mx::array* watched = out.data() + 1;
        for (const auto& plan : plans) {
          positions.attend(plan, arrays, watched);
          positions.feed_forward(plan, arrays);
          arrays += LayerArrays::count;
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
