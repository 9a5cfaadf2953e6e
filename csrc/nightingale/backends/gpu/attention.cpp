#include "nightingale/backends/gpu/attention.h"

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/ops/quantized_cache.h"

namespace nightingale::gpu {

namespace {

constexpr int kHeadDim = 64;
constexpr int kPartSize = 72; // what a part leaves: see decode_attention.metal

// Positions that one threadgroup takes: few, so that there are parts enough to
// keep a large GPU busy, but each part is one more to put together.
constexpr int kChunk = 128;

// Bits of a cached number.
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

// Keys and values of the first positions, after `q` was made. Floats are views,
// whose reader depends on q as well; quantized caches are decoded.
std::vector<mx::array> read_caches(
    const ops::LayerCache& cache,
    int length,
    int bits,
    const mx::array& place,
    const mx::array& q,
    mx::Stream s) {
  if (!bits) {
    return {
        backends::first_positions(cache.keys, length, s),
        backends::first_positions(cache.values, length, s)};
  }
  int batch = q.shape(0), heads = q.shape(1);
  KernelOutput floats{{batch, heads, length, kHeadDim}, q.dtype()};
  return launch(
      {.kernel = "read_quantized",
       .inputs = {cache.keys, cache.values, place, q},
       .outputs = {floats, floats},
       .constants = {{"X", q.dtype()}, {"BITS", bits}, {"HEADS", heads}},
       .groups = {length, batch, 1},
       .threads = {256, 128, 64, 32}},
      s);
}

} // namespace

int attention_parts(int past) {
  return past / kChunk + 1;
}

bool can_use_decode_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    mx::Stream s) {
  const auto& qkv = in.qkv;
  int heads = in.cache.keys.shape(1);
  return qkv.shape(1) == 1 && qkv.shape(2) == 3 * heads * kHeadDim &&
      can_use_gemv(qkv, projection.w, s);
}

ops::SelfAttention decode_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s) {
  const auto& [qkv, frequencies, cache, past, watch] = in;
  int rows = qkv.shape(0), heads = cache.keys.shape(1);
  int parts = attention_parts(past), watched = watch.heads.size();
  mx::Shape watch_shape{watched, watch.count};
  auto place = cache_position(past, cache.keys.shape(2), s);
  Launch attend{
      .kernel = "decode_attention",
      .inputs = {qkv},
      .state = {cache.keys, cache.values},
      .outputs = {{{rows, heads, parts, kPartSize}}},
      .constants =
          {{"X", qkv.dtype()},
           {"C", cache.keys.dtype()},
           {"BITS", cache_bits(cache.keys)},
           {"HEADS", heads},
           {"ROTARY", frequencies.has_value()},
           {"CHUNK", kChunk},
           {"WATCH", watched}},
      .groups = {parts, heads, rows},
      .threads = {512, 256, 128, 64, 32}};
  attend.add_optional("frequencies", frequencies);
  attend.inputs.push_back(place);
  attend.inputs.push_back(cache.written.value_or(qkv));
  const auto& [w, bias] = projection;
  auto shape = GemvShape::of(w);
  auto constants = gemv_constants(w, shape, rows, residual.dtype());
  constants.emplace_back("HEADS", heads);
  constants.emplace_back("CHUNK", kChunk);
  constants.emplace_back("WATCH", watched);
  constants.emplace_back("BIAS", bias.has_value());
  Launch project{
      .kernel = "attention_out",
      .inputs = {},
      .outputs = {{residual.shape(), residual.dtype()}},
      .constants = std::move(constants),
      .groups = {(w.rows() + shape.block - 1) / shape.block, 1, 1},
      .threads = shape.threads};
  std::vector<mx::array> watching;
  if (watched) {
    watching = {numbers(watch.heads), numbers({watch.begin, watch.count})};
    attend.inputs.insert(attend.inputs.end(), watching.begin(), watching.end());
    attend.outputs.push_back({watch_shape});
    project.outputs.push_back({watch_shape});
  } else {
    attend.absent.insert(attend.absent.end(), {"watched", "text", "scores"});
    project.absent = {"scores", "watched", "text", "weights"};
  }
  auto attended = launch(attend, s);

  project.inputs = {attended[0], place, residual, stored(w)};
  project.add_optional("bias", bias);
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

bool can_use_prefill_attention(const ops::AttentionInput& in, mx::Stream s) {
  const auto &qkv = in.qkv, &keys = in.cache.keys;
  int heads = keys.shape(1);
  return has_kernels(s) && in.watch.heads.empty() &&
      qkv.shape(2) == 3 * heads * kHeadDim &&
      (keys.dtype() == qkv.dtype() || ops::quantized_bits(keys, kHeadDim) != 0);
}

ops::SelfAttention prefill_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s) {
  const auto& [qkv, frequencies, cache, past, watch] = in;
  int batch = qkv.shape(0), length = qkv.shape(1);
  int heads = cache.keys.shape(1);
  int bits = ops::quantized_bits(cache.keys, kHeadDim);
  auto place = cache_position(past, cache.keys.shape(2), s);
  // MLX's attention does not see that the caches are written here, but it takes
  // the queries, which the same launch makes.
  auto from = mx::contiguous(qkv, false, s);
  Launch append{
      .kernel = "append_heads",
      .inputs = {from},
      .state = {cache.keys, cache.values},
      .outputs = {{{batch, heads, length, kHeadDim}, qkv.dtype()}},
      .constants =
          {{"X", qkv.dtype()},
           {"C", cache.keys.dtype()},
           {"BITS", cache_bits(cache.keys)},
           {"HEADS", heads},
           {"ROTARY", frequencies.has_value()}},
      .groups = {length, batch, 1},
      .threads = {256, 128, 64, 32}};
  append.add_optional("frequencies", frequencies);
  append.inputs.push_back(place);
  append.inputs.push_back(cache.written.value_or(frequencies.value_or(from)));
  auto q = launch_one(append, s);
  auto read = read_caches(cache, past + length, bits, place, q, s);
  auto attended = mx::fast::scaled_dot_product_attention(
      q,
      read[0],
      read[1],
      backends::attention_scale(kHeadDim),
      length == 1 ? "" : "causal",
      std::nullopt,
      std::nullopt,
      false,
      s);
  auto rows = backends::merge_heads(attended, s);
  return {
      gpu::linear(
          rows, projection.w, {.bias = projection.b, .residual = residual}, s),
      {cache.keys, cache.values, q},
      {}};
}

ops::SelfAttention projected_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s) {
  if (can_use_decode_attention(in, projection, s)) {
    return decode_attention(in, projection, residual, s);
  }
  return can_use_prefill_attention(in, s)
      ? prefill_attention(in, projection, residual, s)
      : backends::projected_attention(in, projection, residual, s);
}

} // namespace nightingale::gpu
