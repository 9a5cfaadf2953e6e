#include "nightingale/ops/feed_forward.h"

#include <algorithm>

#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"

// feed_forward of many rows on the matrix units, as one op: what is between its
// products stays in the second-level cache, beside the weights.

namespace nightingale::cpu {

namespace {

struct PackedBlock;
struct InnerSums;
struct NormedRows;
struct FloatRow;
struct HiddenRows;

constexpr int kBlockRows = 2 * kMatrixTile;

bool fits(const ops::FeedForwardInput& in, const ops::FeedForward& block) {
  return in.dtype == mx::bfloat16 && in.x.dtype() == mx::bfloat16 &&
      in.residual.dtype() == mx::float32 && row_count(in.x) > kDotRows &&
      can_pack_panels(block.out) && can_pack_panels(block.up) &&
      can_pack_panels(block.down);
}

// A layer norm while an op runs.
struct RowNorm {
  const float* w;
  const float* b;
  float eps;

  // y: bfloat16
  void operator()(const float* x, int channels, uint16_t* y) const {
    float* floats = scratch<FloatRow>(channels);
    simd().layer_norm(x, w, b, channels, eps, floats);
    simd().pack[static_cast<int>(Storage::bf16)](floats, channels, y);
  }
};

// One product, its weights packed for all rows.
struct Layer {
  PanelWeights w;
  const float* bias;
  const uint16_t* packed = nullptr;

  void multiply(
      const uint16_t* x,
      int64_t stride,
      int rows,
      EpilogueWriter epilogue) const {
    epilogue.bias = bias;
    multiply_panels(x, stride, rows, w, packed, epilogue);
  }
};

struct Block {
  Layer out, up, down;
  RowNorm norm;
  std::optional<RowNorm> next = std::nullopt;

  void pack() {
    Layer* layers[] = {&out, &up, &down};
    int64_t numbers = 0;
    for (const Layer* layer : layers) {
      numbers += layer->w.packed_numbers();
    }
    auto* packed = scratch<PackedBlock, uint16_t>(numbers);
    for (Layer* layer : layers) {
      layer->w.pack(packed);
      layer->packed = packed;
      packed += layer->w.packed_numbers();
    }
  }

  // Some rows of each. x: bfloat16; normed: of `next`
  void run(
      const uint16_t* x,
      const float* residual,
      int rows,
      float* sum,
      uint16_t* normed) const {
    int channels = out.w.columns, features = up.w.columns;
    float* inner = scratch<InnerSums>(rows * channels);
    out.multiply(
        x,
        out.w.depth,
        rows,
        {.residual = residual, .y = inner, .stride = channels});
    auto* rounded = scratch<NormedRows, uint16_t>(rows * channels);
    for (int r = 0; r < rows; ++r) {
      norm(inner + r * channels, channels, rounded + r * channels);
    }
    // A tile more than the features, so that rows do not crowd the cache.
    int64_t stride = features + kMatrixTile;
    auto* hidden = scratch<HiddenRows, uint16_t>(rows * stride);
    up.multiply(
        rounded,
        channels,
        rows,
        {.curve = Curve::gelu,
         .y = hidden,
         .stride = stride,
         .storage = Storage::bf16});
    down.multiply(
        hidden,
        stride,
        rows,
        {.residual = inner, .y = sum, .stride = channels});
    for (int r = 0; next && r < rows; ++r) {
      (*next)(sum + r * channels, channels, normed + r * channels);
    }
  }
};

// The inputs of the op, in this order, and then the next norm's.
enum Input {
  kX,
  kResidual,
  kOut,
  kOutBias,
  kNorm,
  kNormBias,
  kUp,
  kUpBias,
  kDown,
  kDownBias,
  kNext,
  kNextBias
};

Arrays run_fused(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm* next,
    mx::Stream s) {
  Arrays inputs{
      dense(in.x, s),
      dense(in.residual, s),
      dense(block.out.w, s),
      as_float(block.out_b, s),
      as_float(block.norm.w, s),
      as_float(block.norm.b, s),
      dense(block.up.w, s),
      as_float(block.up_b, s),
      dense(block.down.w, s),
      as_float(block.down_b, s)};
  std::vector<Output> outputs{{in.residual.shape()}};
  backends::check_linear(in.x, block.out, /* on_cpu */ true);
  if (next) {
    inputs.push_back(as_float(next->w, s));
    inputs.push_back(as_float(next->b, s));
    outputs.push_back({in.residual.shape(), mx::bfloat16});
  }
  struct Sizes {
    int columns, depth, bits;

    Sizes(const ops::Matrix& w)
        : columns(w.rows()), depth(w.columns()), bits(w.bits) {}
  };
  return make_ops(
      "FeedForward",
      std::move(outputs),
      std::move(inputs),
      [out = Sizes(block.out),
       up = Sizes(block.up),
       down = Sizes(block.down),
       eps = block.norm.eps,
       next_eps = next ? next->eps : 0.0f](const Arrays& in, Arrays& results) {
        auto layer = [&](const Sizes& sizes, Input w) -> Layer {
          const auto& [columns, depth, bits] = sizes;
          return {{in[w], columns, depth, bits}, in[w + 1].data<float>()};
        };
        auto norm = [&](Input w, float eps) -> RowNorm {
          return {in[w].data<float>(), in[w + 1].data<float>(), eps};
        };
        Block block{
            layer(out, kOut),
            layer(up, kUp),
            layer(down, kDown),
            norm(kNorm, eps)};
        uint16_t* normed = nullptr;
        if (results.size() > 1) {
          block.next = norm(kNext, next_eps);
          normed = results[1].data<uint16_t>();
        }
        block.pack();
        const auto* x = in[kX].data<uint16_t>();
        const auto* residual = in[kResidual].data<float>();
        float* sum = results[0].data<float>();
        for_parts(row_count(in[kX]), kBlockRows, [&](int64_t row, int count) {
          int64_t at = row * out.columns;
          block.run(
              x + row * out.depth,
              residual + at,
              count,
              sum + at,
              normed ? normed + at : nullptr);
        });
      },
      s);
}

} // namespace

mx::array feed_forward(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    mx::Stream s) {
  return fits(in, block) ? run_fused(in, block, nullptr, s)[0]
                         : backends::feed_forward(in, block, s);
}

ops::Normed feed_forward_norm(
    const ops::FeedForwardInput& in,
    const ops::FeedForward& block,
    const ops::LayerNorm& next,
    mx::Stream s) {
  if (!fits(in, block)) {
    return backends::feed_forward_norm(in, block, next, s);
  }
  auto results = run_fused(in, block, &next, s);
  return {results[0], results[1]};
}

} // namespace nightingale::cpu
