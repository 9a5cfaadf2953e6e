#include <algorithm>
#include <utility>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/backends/cpu/threads.h"

namespace nightingale::cpu {

namespace {

constexpr int kGates = 4;

struct StateWeights;
struct States;
struct Cells;

// Steps through time. A tile makes all four gates of some units of some rows,
// and with them those units' next state; it reads the last state of all units.
class Recurrence {
 public:
  // from_input: [B, T, 4H]; w: [4H, H]; y: [B, T, H]
  Recurrence(const mx::array& from_input, const mx::array& w, mx::array& y)
      : batch_(y.shape(0)),
        length_(y.shape(1)),
        units_(y.shape(2)),
        from_input_(from_input.data<float>()),
        y_(y.data<float>()),
        // A cache line more, so that the rows of a tile do not crowd a few sets
        // of the cache.
        stride_(units_ + 16),
        rows_(ceil_div(batch_, loops_.rows) * loops_.rows),
        w_(scratch<StateWeights>(panels() * panel_size() * kGates)),
        before_(scratch<States>(2 * rows_ * stride_)),
        after_(before_ + rows_ * stride_),
        cells_(scratch<Cells>(int64_t(batch_) * units_)) {
    std::fill_n(before_, 2 * rows_ * stride_, 0.0f);
    std::fill_n(cells_, int64_t(batch_) * units_, 0.0f);
    parallel_for(panels() * kGates, [&](int index) {
      int first = index / kGates * loops_.columns, gate = index % kGates;
      loops_.pack_panel[static_cast<int>(Storage::f32)](
          w.data<float>() + (int64_t(gate) * units_ + first) * units_,
          units_,
          std::min(loops_.columns, units_ - first),
          units_,
          w_ + index * panel_size());
    });
  }

  void run() {
    int tiles = rows_ / loops_.rows;
    for (int t = 0; t < length_; ++t) {
      parallel_for(tiles * panels(), [&](int index) {
        run_tile(t, index / panels() * loops_.rows, index % panels());
      });
      std::swap(before_, after_);
    }
  }

 private:
  int panels() const {
    return ceil_div(units_, loops_.columns);
  }
  int64_t panel_size() const {
    return int64_t(units_) * loops_.columns;
  }

  void run_tile(int t, int first_row, int panel) {
    int first = panel * loops_.columns;
    int count = std::min(loops_.columns, units_ - first);
    alignas(64) float sums[kMostTileRows * kGates * kMostTileColumns];
    int64_t row_stride = int64_t(kGates) * loops_.columns;
    TileArgs a;
    a.x = before_ + first_row * stride_;
    a.row_step = stride_;
    a.tap_step = units_;
    a.taps = 1;
    a.depth = units_;
    a.w_stride = loops_.columns;
    a.y_stride = row_stride;
    for (int gate = 0; gate < kGates; ++gate) {
      a.w = w_ + (int64_t(panel) * kGates + gate) * panel_size();
      a.y = sums + gate * loops_.columns;
      loops_.tile(a);
    }
    int last_row = std::min(batch_, first_row + loops_.rows);
    for (int row = first_row; row < last_row; ++row) {
      float* gates = sums + (row - first_row) * row_stride;
      int64_t step = int64_t(row) * length_ + t;
      add_input(from_input_ + step * kGates * units_ + first, count, gates);
      float* state = after_ + row * stride_ + first;
      simd().activation.lstm_cell(
          gates,
          loops_.columns,
          count,
          cells_ + int64_t(row) * units_ + first,
          state);
      std::copy_n(state, count, y_ + step * units_ + first);
    }
  }

  // from: the first of these units' inputs; gates: [4, columns]
  void add_input(const float* from, int count, float* gates) const {
    for (int gate = 0; gate < kGates; ++gate) {
      for (int i = 0; i < count; ++i) {
        gates[gate * loops_.columns + i] += from[gate * units_ + i];
      }
    }
  }

  const ProductLoops& loops_ = simd().product;
  int batch_, length_, units_;
  const float* from_input_;
  float* y_;
  int64_t stride_; // between rows of states
  int64_t rows_; // of states: whole tiles
  float* w_; // [panels, 4, H, columns]
  float* before_; // [rows, stride]: the last step's states
  float* after_;
  float* cells_; // [B, H]
};

} // namespace

mx::array
lstm(const mx::array& x, const ops::LstmWeights& weights, mx::Stream s) {
  const auto& [w_ih, w_hh, bias] = weights;
  auto from_input =
      cpu::linear(x, w_ih, {.bias = bias, .dtype = mx::float32}, s);
  return make_op(
      "Lstm",
      {{x.shape(0), x.shape(1), w_hh.shape(1)}},
      {from_input, as_float(w_hh, s)},
      [](const Arrays& in, Arrays& out) {
        Recurrence(in[0], in[1], out[0]).run();
      },
      s);
}

} // namespace nightingale::cpu
