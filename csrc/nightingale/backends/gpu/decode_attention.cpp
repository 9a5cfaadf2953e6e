#include "nightingale/backends/gpu/decode_attention.h"

#include "mlx/ops.h"
#include "nightingale/backends/gpu/cache_position.h"
#include "nightingale/backends/gpu/gemv.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::gpu {

namespace {

constexpr int kHeadDim = 64;
constexpr int kPartSize = 72; // what a part leaves: see decode_attention.metal

// Positions that one threadgroup takes: few, so that there are parts enough to
// keep a large GPU busy, but each part is one more to put together.
constexpr int kChunk = 128;

// As the kernels take it: of codes, or of floats.
int cache_bits(const mx::array& cache) {
  int quantized = ops::quantized_bits(cache, kHeadDim);
  return quantized ? quantized : 8 * static_cast<int>(cache.itemsize());
}

std::vector<mx::array> split_rows(const mx::array& rows, mx::Stream s) {
  if (rows.shape(0) == 1) {
    return {rows};
  }
  std::vector<mx::array> single;
  for (int i = 0; i < rows.shape(0); ++i) {
    single.push_back(mx::slice(rows, {i, 0}, {i + 1, rows.shape(1)}, s));
  }
  return single;
}

} // namespace

bool can_use_decode_attention(
    const mx::array& qkv,
    const ops::LayerCache& cache,
    const ops::Matrix& out,
    mx::Stream s) {
  int heads = cache.keys.shape(1);
  return qkv.shape(1) == 1 && qkv.shape(2) == 3 * heads * kHeadDim &&
      can_use_gemv(qkv, out, s);
}

int attention_parts(int past) {
  return past / kChunk + 1;
}

ops::ProjectedAttention projected_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const ops::LayerCache& cache,
    int past,
    const ops::AttentionWatch& watch,
    const ops::Matrix& out,
    const mx::array& residual,
    mx::Stream s) {
  int rows = qkv.shape(0), heads = cache.keys.shape(1);
  int parts = attention_parts(past), watched = watch.heads.size();
  mx::Shape watch_shape{watched, watch.count};
  auto place = cache_position(past, cache.keys.shape(2), s);
  Launch attend{
      .kernel = "decode_attention",
      .inputs = {qkv, frequencies, place, cache.written.value_or(qkv)},
      .state = {cache.keys, cache.values},
      .outputs = {{{rows, heads, parts, kPartSize}}},
      .constants =
          {{"X", qkv.dtype()},
           {"C", cache.keys.dtype()},
           {"BITS", cache_bits(cache.keys)},
           {"HEADS", heads},
           {"CHUNK", kChunk},
           {"WATCH", watched}},
      .groups = {parts, heads, rows},
      .threads = {512, 256, 128, 64}};
  auto shape = GemvShape::of(out);
  auto constants = gemv_constants(out, shape, rows, residual.dtype());
  constants.emplace_back("HEADS", heads);
  constants.emplace_back("CHUNK", kChunk);
  constants.emplace_back("WATCH", watched);
  Launch project{
      .kernel = "attention_out",
      .inputs = {},
      .outputs = {{residual.shape(), residual.dtype()}},
      .constants = std::move(constants),
      .groups = {(out.rows() + shape.block - 1) / shape.block, 1, 1},
      .threads = shape.threads};
  std::vector<mx::array> watching;
  if (watched) {
    watching = {numbers(watch.heads), numbers({watch.begin, watch.count})};
    attend.inputs.insert(attend.inputs.end(), watching.begin(), watching.end());
    attend.outputs.push_back({watch_shape});
    project.outputs.push_back({watch_shape});
  } else {
    attend.absent = {"watched", "text", "scores"};
    project.absent = {"scores", "watched", "text", "weights"};
  }
  auto attended = launch(attend, s);

  project.inputs = {attended[0], place, residual, stored(out)};
  if (watched) {
    project.inputs.insert(
        project.inputs.end(), {attended[1], watching[0], watching[1]});
  }
  auto projected = launch(project, s);
  std::vector<mx::array> weights;
  if (watched) {
    weights = split_rows(projected[1], s);
  }
  return {
      projected[0],
      {cache.keys, cache.values, attended[0]},
      std::move(weights)};
}

} // namespace nightingale::gpu
