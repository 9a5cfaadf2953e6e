#include "nightingale/ops/shared_frames.h"

#include <algorithm>
#include <bit>

#include "nightingale/backends/gpu/attention.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/gpu/tile_shape.h"

namespace nightingale::gpu {

namespace {

// Lengths in frames that differ by less make the same launches.
constexpr int kLengthStep = 16;

bool makes_whole_rows(const ops::CausalConv& conv, mx::Dtype dtype) {
  return conv.matrix && fits_tiles(*conv.matrix, dtype) &&
      fits_whole_rows(conv.matrix->rows());
}

} // namespace

bool can_share_frames(const ops::FrameNetwork& network, mx::Stream s) {
  auto dtype = network.dtype;
  return has_tiles(s) && fits_tile_attention(network.head_dim, dtype) &&
      std::ranges::all_of(
             network.resnets,
             [&](const auto* block) {
               return block->matrix && makes_whole_rows(block->first, dtype) &&
                   makes_whole_rows(block->second, dtype) &&
                   fits_tiles(block->residual_w, dtype);
             }) &&
      std::ranges::all_of(
             network.convs,
             [&](const auto* conv) {
               return makes_whole_rows(*conv, dtype);
             }) &&
      std::ranges::all_of(
             network.feed_forwards,
             [&](const auto* block) {
               return fits_tile_feed_forward(*block, dtype);
             }) &&
      std::ranges::all_of(network.products, [&](const auto* matrix) {
           return fits_tiles(*matrix, dtype);
         });
}

ops::JoinedInputs join_inputs(
    const std::vector<const ops::OdeState*>& states,
    mx::Stream s) {
  int count = states.size();
  int listed = static_cast<int>(std::bit_ceil(states.size()));
  const auto& first = states[0]->input;
  int sequences = first.shape(0), width = first.shape(2), longest = 0;
  std::vector<int> lengths;
  for (const auto* state : states) {
    lengths.push_back(state->input.shape(1));
    longest = std::max(longest, lengths.back());
  }
  int rows = group_count(longest, kLengthStep) * kLengthStep;
  std::vector<mx::array> inputs, order;
  for (int i = 0; i < listed; ++i) {
    const auto& state = *states[i < count ? i : 0];
    inputs.push_back(state.input);
    order.push_back(state.written.value_or(numbers({0.0f})));
  }
  inputs.insert(inputs.end(), order.begin(), order.end());
  inputs.push_back(frame_extent(rows, lengths));
  auto x = launch_one(
      {.kernel = "join_inputs",
       .inputs = std::move(inputs),
       .outputs = {{{count * sequences, rows, width}, first.dtype()}},
       .constants =
           {{"I", first.dtype()},
            {"WIDTH", width},
            {"SEQUENCES", sequences},
            {"LISTED", listed}},
       .groups = {rows, count * sequences, 1},
       .threads = {128, 64, 32}},
      s);
  return {x, {count * sequences, std::move(lengths)}};
}

} // namespace nightingale::gpu
