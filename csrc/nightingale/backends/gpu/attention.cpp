#include "nightingale/backends/gpu/attention.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

#include "mlx/fast.h"
#include "mlx/ops.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/gpu/tile_shape.h"
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

// [1, count] of weights: [sequences, heads, at least count]
mx::array watched_weights(
    const mx::array& weights,
    int sequence,
    int head,
    int count,
    mx::Stream s) {
  bool all = weights.shape(0) == 1 && weights.shape(1) == 1;
  auto one = all
      ? weights
      : mx::slice(
            weights, {sequence, head, 0}, {sequence + 1, head + 1, count}, s);
  return mx::reshape(one, {1, count}, s);
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

namespace {

// What a launch waits for before it writes to the cache of a sequence. As one
// type: the kernel would otherwise be compiled for each combination.
mx::array writes_before(
    const ops::LayerCache& cache,
    const mx::array& qkv,
    mx::Stream s) {
  auto written = cache.written.value_or(qkv);
  return written.dtype() == mx::float32 ? written
                                        : mx::view(written, mx::float32, s);
}

// Stands in a list for the cache of a sequence that is not there.
mx::array spare_cache(mx::Dtype dtype, size_t index) {
  static std::mutex mutex;
  static auto* kept = new std::map<std::pair<int, size_t>, mx::array>;
  std::lock_guard<std::mutex> lock(mutex);
  auto key = std::pair(static_cast<int>(dtype.val()), index);
  auto found = kept->find(key);
  if (found == kept->end()) {
    std::vector<int> zeros(kLeastDeviceSize, 0);
    mx::array spare(zeros.begin(), {kLeastDeviceSize}, dtype);
    found = kept->emplace(key, spare).first;
  }
  return found->second;
}

// As many caches as a kernel lists.
int listed_caches(size_t sequences) {
  return static_cast<int>(std::bit_ceil(sequences));
}

// The keys, then the values, of all sequences.
std::vector<mx::array> cache_state(const std::vector<StepSequence>& sequences) {
  size_t listed = listed_caches(sequences.size());
  auto dtype = sequences[0].cache.keys.dtype();
  std::vector<mx::array> state;
  for (size_t i = 0; i < listed; ++i) {
    bool used = i < sequences.size();
    state.push_back(used ? sequences[i].cache.keys : spare_cache(dtype, i));
  }
  for (size_t i = 0; i < listed; ++i) {
    bool used = i < sequences.size();
    state.push_back(
        used ? sequences[i].cache.values : spare_cache(dtype, listed + i));
  }
  return state;
}

int longest_text(const std::vector<StepSequence>& sequences) {
  int longest = 0;
  for (const auto& each : sequences) {
    longest = std::max(longest, each.watch.count);
  }
  return longest;
}

// Where the text begins and its length; for each of several sequences, the
// length of the longest in between.
mx::array text_spans(const std::vector<StepSequence>& sequences) {
  int longest = longest_text(sequences);
  std::vector<int> spans;
  if (sequences.size() == 1) {
    return numbers({sequences[0].watch.begin, longest});
  }
  for (const auto& each : sequences) {
    spans.insert(spans.end(), {each.watch.begin, longest, each.watch.count, 0});
  }
  return numbers(spans);
}

} // namespace

StepAttention step_attention(
    const mx::array& qkv,
    const std::optional<mx::array>& frequencies,
    const std::vector<StepSequence>& sequences,
    const mx::array& positions,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s) {
  const auto& first = sequences[0];
  int count = sequences.size(), listed = listed_caches(count);
  int heads = first.cache.keys.shape(1), rows = qkv.shape(0) / count;
  int parts = 0, watched = first.watch.heads.size();
  for (const auto& each : sequences) {
    parts = std::max(parts, attention_parts(each.past));
  }
  mx::Shape watch_shape{count, watched, longest_text(sequences)};
  Launch attend{
      .kernel = "decode_attention",
      .inputs = {qkv},
      .state = cache_state(sequences),
      .outputs = {{{count * rows, heads, parts, kPartSize}}},
      .constants =
          {{"X", qkv.dtype()},
           {"C", first.cache.keys.dtype()},
           {"BITS", cache_bits(first.cache.keys)},
           {"HEADS", heads},
           {"ROWS", rows},
           {"ROTARY", frequencies.has_value()},
           {"CHUNK", kChunk},
           {"LISTED", listed},
           {"WATCH", watched}},
      .groups = {parts, heads, count * rows},
      .threads = {512, 256, 128, 64, 32}};
  attend.add_optional("frequencies", frequencies);
  attend.inputs.push_back(positions);
  for (int i = 0; i < listed; ++i) {
    const auto& cache = sequences[i < count ? i : 0].cache;
    attend.inputs.push_back(
        listed == 1 ? cache.written.value_or(qkv)
                    : writes_before(cache, qkv, s));
  }
  const auto& [w, bias] = projection;
  auto shape = GemvShape::of(w);
  auto constants = gemv_constants(w, shape, rows, residual.dtype());
  constants.emplace_back("HEADS", heads);
  constants.emplace_back("CHUNK", kChunk);
  constants.emplace_back("LISTED", listed);
  constants.emplace_back("WATCH", watched);
  constants.emplace_back("BIAS", bias.has_value());
  Launch project{
      .kernel = "attention_out",
      .inputs = {},
      .outputs = {{residual.shape(), residual.dtype()}},
      .constants = std::move(constants),
      .groups = {group_count(w.rows(), shape.block), count, 1},
      .threads = shape.threads};
  std::vector<mx::array> watching;
  if (watched) {
    watching = {numbers(first.watch.heads), text_spans(sequences)};
    attend.inputs.insert(attend.inputs.end(), watching.begin(), watching.end());
    attend.outputs.push_back({watch_shape});
    project.outputs.push_back({watch_shape});
  } else {
    attend.absent.insert(attend.absent.end(), {"watched", "text", "scores"});
    project.absent = {"scores", "watched", "text", "weights"};
  }
  attend.best_size_only = project.best_size_only = listed > 1;
  auto attended = launch(attend, s);

  project.inputs = {attended[0], positions};
  project.add_optional(
      "most", listed > 1 ? std::optional(numbers({parts})) : std::nullopt);
  project.inputs.insert(project.inputs.end(), {residual, stored(w)});
  project.add_optional("bias", bias);
  if (watched) {
    project.inputs.insert(
        project.inputs.end(), {attended[1], watching[0], watching[1]});
  }
  auto projected = launch(project, s);
  StepAttention result{projected[0], attended[0], {}};
  for (int i = 0; watched && i < count; ++i) {
    for (int head = 0; head < watched; ++head) {
      result.weights.push_back(
          watched_weights(projected[1], i, head, sequences[i].watch.count, s));
    }
  }
  return result;
}

ops::SelfAttention decode_attention(
    const ops::AttentionInput& in,
    const ops::Projection& projection,
    const mx::array& residual,
    mx::Stream s) {
  const auto& [qkv, frequencies, cache, past, watch] = in;
  auto made = step_attention(
      qkv,
      frequencies,
      {{cache, past, watch}},
      cache_position(past, cache.keys.shape(2), s),
      projection,
      residual,
      s);
  return {made.out, {cache.keys, cache.values, made.written}, made.weights};
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
