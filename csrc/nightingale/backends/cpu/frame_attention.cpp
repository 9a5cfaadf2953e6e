#include <algorithm>
#include <cmath>
#include <cstring>

#include "nightingale/backends/cpu/matrix_units.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

struct PackedKeys;
struct PackedValues;
struct PackedPositions;
struct QueryStrip;
struct ScoreStrip;
struct DistanceStrip;

// Attention of all heads of one batch row, in strips of as many queries as a
// product tile has rows: all scores of a strip are in cache at once.
class StripAttention {
 public:
  StripAttention(
      const mx::array& q,
      const mx::array& k,
      const mx::array& v,
      int b,
      int heads)
      : q_(q),
        b_(b),
        heads_(heads),
        length_(q.shape(1)),
        keys_(k.shape(1)),
        depth_(q.shape(2) / heads),
        key_panels_(ceil_div(keys_, loops_.columns)),
        keys_packed_(
            pack<PackedKeys>(row_of<float>(k, b, 0), k.strides(1), keys_)),
        values_packed_(copy_values(v)) {}

  // Scores that also depend on distance, as relative_attention has them.
  void add_positions(
      const mx::array& positions,
      const mx::array& content_bias,
      const mx::array& position_bias) {
    int rows = positions.shape(0);
    position_panels_ = ceil_div(rows, loops_.columns);
    positions_packed_ = pack<PackedPositions>(
        positions.data<float>(), positions.shape(1), rows);
    content_bias_ = content_bias.data<float>();
    position_bias_ = position_bias.data<float>();
  }

  // out: [T, heads * depth]
  void run(float* out) const {
    int strips = ceil_div(length_, loops_.rows);
    parallel_for(heads_ * strips, [&](int tile) {
      attend(tile / strips, tile % strips, out);
    });
  }

 private:
  // Panels of `count` rows, for every head: [heads, panels, depth, columns]
  template <typename Tag>
  const float* pack(const float* rows, int64_t stride, int count) const {
    int panels = ceil_div(count, loops_.columns);
    int64_t size = int64_t(depth_) * loops_.columns;
    float* packed = scratch<Tag>(heads_ * panels * size);
    parallel_for(heads_ * panels, [&](int i) {
      int head = i / panels, begin = i % panels * loops_.columns;
      loops_.pack_panel[static_cast<int>(Storage::f32)](
          rows + begin * stride + head * depth_,
          stride,
          std::min(loops_.columns, count - begin),
          depth_,
          packed + i * size);
    });
    return packed;
  }

  // [heads, panels of channels, S, columns]
  const float* copy_values(const mx::array& v) const {
    int panels = ceil_div(depth_, loops_.columns);
    int64_t size = int64_t(keys_) * loops_.columns;
    float* copied = scratch<PackedValues>(heads_ * panels * size);
    parallel_for(heads_ * panels, [&](int i) {
      int begin = i % panels * loops_.columns;
      int count = std::min(loops_.columns, depth_ - begin);
      for (int t = 0; t < keys_; ++t) {
        float* to = copied + i * size + int64_t(t) * loops_.columns;
        const float* from =
            row_of<float>(v, b_, t) + i / panels * depth_ + begin;
        std::memcpy(to, from, count * sizeof(float));
        std::fill(to + count, to + loops_.columns, 0.0f);
      }
    });
    return copied;
  }

  // The queries from `begin` on, with a bias added where there is one; zeros
  // behind the last.
  void copy_queries(int head, int begin, const float* bias, float* strip)
      const {
    for (int r = 0; r < loops_.rows; ++r) {
      float* to = strip + r * depth_;
      if (begin + r >= length_) {
        std::fill(to, to + depth_, 0.0f);
        continue;
      }
      const float* from = row_of<float>(q_, b_, begin + r) + head * depth_;
      for (int d = 0; d < depth_; ++d) {
        to[d] = bias ? from[d] + bias[head * depth_ + d] : from[d];
      }
    }
  }

  // The strip times `count` packed panels: y [rows, stride]
  void score(
      const float* strip,
      const float* panels,
      int count,
      float* y,
      int64_t stride) const {
    TileArgs a;
    a.x = strip;
    a.row_step = a.tap_step = a.depth = depth_;
    a.taps = 1;
    a.w_stride = loops_.columns;
    a.y_stride = stride;
    for (int panel = 0; panel < count; ++panel) {
      a.w = panels + int64_t(panel) * depth_ * loops_.columns;
      a.y = y + panel * loops_.columns;
      loops_.tile(a);
    }
  }

  struct Distances {
    const float* scores = nullptr; // of the strip's last row and the first key
    int64_t stride = 0;

    // A row before the last one reads one further, for each row between.
    const float* row(int behind, int row) const {
      return scores ? scores + row * stride + behind : nullptr;
    }
  };

  // last: the last query of the strip
  Distances score_distances(int head, int begin, int last) const {
    if (!positions_packed_) {
      return {};
    }
    float* strip = scratch<QueryStrip>(loops_.rows * depth_);
    copy_queries(head, begin, position_bias_, strip);
    int first = length_ - 1 - last; // row of positions
    int end = first + keys_ + last - begin;
    int panel = first / loops_.columns;
    int panels = ceil_div(end, loops_.columns) - panel;
    int64_t stride = int64_t(panels) * loops_.columns;
    // The last row is read in whole vectors.
    float* scores =
        scratch<DistanceStrip>(loops_.rows * stride + loops_.columns);
    int64_t at = int64_t(head) * position_panels_ + panel;
    score(
        strip,
        positions_packed_ + at * depth_ * loops_.columns,
        panels,
        scores,
        stride);
    return {scores + first - panel * loops_.columns, stride};
  }

  void attend(int head, int index, float* out) const {
    int first = index * loops_.rows;
    int count = std::min(loops_.rows, length_ - first);
    // The last strip begins early enough to be whole, where there are the rows.
    int begin = std::max(0, std::min(first, length_ - loops_.rows));
    int last = std::min(length_, begin + loops_.rows) - 1;
    Distances distances = score_distances(head, begin, last);
    float* strip = scratch<QueryStrip>(loops_.rows * depth_);
    copy_queries(head, begin, content_bias_, strip);
    int64_t stride = int64_t(key_panels_) * loops_.columns;
    float* scores = scratch<ScoreStrip>(loops_.rows * stride);
    score(
        strip,
        keys_packed_ + int64_t(head) * depth_ * stride,
        key_panels_,
        scores,
        stride);
    float factors[kMostTileRows];
    float scale = 1.0f / std::sqrt(static_cast<float>(depth_));
    for (int r = first - begin; r < first - begin + count; ++r) {
      const float* more = distances.row(last - begin - r, r);
      float* row = scores + r * stride;
      factors[r] = 1.0f / simd().attention.exp_row(row, more, keys_, scale);
    }
    float* y = out + int64_t(first) * heads_ * depth_ + head * depth_;
    weigh_values(head, scores, stride, factors, first - begin, count, y);
  }

  void weigh_values(
      int head,
      const float* weights,
      int64_t stride,
      const float* factors,
      int skip,
      int count,
      float* y) const {
    alignas(64) float sums[kMostTileRows * kMostTileColumns];
    int panels = ceil_div(depth_, loops_.columns);
    TileArgs a;
    a.x = weights;
    a.row_step = stride;
    a.tap_step = a.depth = keys_;
    a.taps = 1;
    a.w_stride = a.y_stride = loops_.columns;
    a.y = sums;
    for (int panel = 0; panel < panels; ++panel) {
      int column = panel * loops_.columns;
      a.w = values_packed_ +
          (int64_t(head) * panels + panel) * keys_ * loops_.columns;
      loops_.tile(a);
      for (int r = 0; r < count; ++r) {
        simd().attention.scale_row(
            sums + (skip + r) * loops_.columns,
            factors[skip + r],
            std::min(loops_.columns, depth_ - column),
            y + int64_t(r) * heads_ * depth_ + column);
      }
    }
  }

  const ProductLoops& loops_ = simd().product;
  const mx::array& q_;
  int b_;
  int heads_;
  int length_;
  int keys_;
  int depth_;
  int key_panels_;
  const float* keys_packed_;
  const float* values_packed_;
  int position_panels_ = 0;
  const float* positions_packed_ = nullptr;
  const float* content_bias_ = nullptr;
  const float* position_bias_ = nullptr;
};

float* batch_row(mx::array& out, int b) {
  return out.data<float>() + int64_t(b) * out.shape(1) * out.shape(2);
}

} // namespace

mx::array full_attention(const ops::AttentionHeads& input, mx::Stream s) {
  const auto &q = input.q, &k = input.k, &v = input.v;
  int heads = input.heads;
  auto is_half = [](const mx::array& x) { return x.dtype() == mx::bfloat16; };
  if (is_half(q) && is_half(k) && is_half(v) &&
      can_use_matrix_attention(q.shape(2) / heads)) {
    return make_op(
        "FullAttention",
        {q.shape(), mx::bfloat16},
        {dense_rows(q, s), dense_rows(k, s), dense_rows(v, s)},
        [heads](const Arrays& in, Arrays& out) {
          matrix_attention(in[0], in[1], in[2], heads, out[0]);
        },
        s);
  }
  auto y = make_op(
      "FullAttention",
      {q.shape()},
      {as_rows(q, s), as_rows(k, s), as_rows(v, s)},
      [heads](const Arrays& in, Arrays& out) {
        for (int b = 0; b < in[0].shape(0); ++b) {
          StripAttention attention(in[0], in[1], in[2], b, heads);
          attention.run(batch_row(out[0], b));
        }
      },
      s);
  return q.dtype() == mx::float32 ? y : cast(y, q.dtype(), s);
}

mx::array relative_attention(
    const ops::AttentionHeads& input,
    const ops::RelativePositions& relative,
    mx::Stream s) {
  return make_op(
      "RelativeAttention",
      {input.q.shape()},
      {as_rows(input.q, s),
       as_rows(input.k, s),
       as_rows(input.v, s),
       as_float(relative.positions, s),
       as_float(relative.content_bias, s),
       as_float(relative.position_bias, s)},
      [heads = input.heads](const Arrays& in, Arrays& out) {
        for (int b = 0; b < in[0].shape(0); ++b) {
          StripAttention attention(in[0], in[1], in[2], b, heads);
          attention.add_positions(in[3], in[4], in[5]);
          attention.run(batch_row(out[0], b));
        }
      },
      s);
}

} // namespace nightingale::cpu
