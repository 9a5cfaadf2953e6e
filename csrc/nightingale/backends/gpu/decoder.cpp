#include <algorithm>

#include "mlx/ops.h"

#include "nightingale/backends/gpu/attention.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/gpu/primitives.h"
#include "nightingale/backends/gpu/replay.h"

namespace nightingale::gpu {

namespace {

// What decides which launches a layer makes, and on which memory.
struct LayerLaunches {
  const ops::DecoderLayer* layer;
  std::uintptr_t keys, values;
  ops::AttentionWatch watch;

  explicit LayerLaunches(const ops::DecoderRun& run)
      : layer(run.layer),
        keys(run.cache->keys.id()),
        values(run.cache->values.id()),
        watch(run.watch) {}

  bool are_of(const ops::DecoderRun& run) const {
    return layer == run.layer && keys == run.cache->keys.id() &&
        values == run.cache->values.id() && watch == run.watch;
  }
};

// A step that has been run.
struct DecoderStep : ops::RecordedStep {
  std::vector<LayerLaunches> layers;
  int parts;
  mx::Shape shape; // of x
  mx::Dtype dtype;
  mx::Stream stream;
  // None while nothing has been repeated.
  std::shared_ptr<const Recording> recording = nullptr;

  DecoderStep(const ops::DecoderInput& in, mx::Stream s)
      : layers(in.runs.begin(), in.runs.end()),
        parts(attention_parts(in.past)),
        shape(in.x.shape()),
        dtype(in.x.dtype()),
        stream(s) {}

  // Whether a step makes the same launches; asked for every token.
  bool is_like(const ops::DecoderInput& in, mx::Stream s) const {
    return parts == attention_parts(in.past) && shape == in.x.shape() &&
        dtype == in.x.dtype() && stream == s &&
        std::equal(
               layers.begin(),
               layers.end(),
               in.runs.begin(),
               in.runs.end(),
               [](const auto& one, const auto& run) {
                 return one.are_of(run);
               });
  }
};

// Whether the step may be repeated: it is written in place into caches that are
// there.
bool can_repeat(const std::vector<ops::DecoderRun>& runs) {
  return runs.back().cache->written &&
      std::all_of(runs.begin(), runs.end(), [](const auto& run) {
           return is_computed(run.cache->keys) &&
               is_computed(run.cache->values);
         });
}

// The caches have been written when the last layer's has been.
void set_written(
    const std::vector<ops::DecoderRun>& runs,
    const mx::array& written) {
  for (const auto& run : runs) {
    run.cache->written = written;
  }
}

// Builds the step once more, this time to record it. Null where it could not
// be: then `made` is the result, otherwise never to be evaluated.
std::shared_ptr<const Recording> record(
    const ops::DecoderInput& in,
    const Arrays& inputs,
    ops::DecoderOutput& made,
    mx::Stream s) {
  long first = first_launches(), bytes = launch_count().source_bytes;
  set_written(in.runs, inputs.back());
  made = backends::decoder_layers(in, s);
  if (first_launches() != first) {
    return nullptr;
  }
  Arrays outputs{made.x};
  outputs.insert(outputs.end(), made.weights.begin(), made.weights.end());
  outputs.push_back(*in.runs.back().cache->written);
  bytes = launch_count().source_bytes - bytes;
  auto recording = Recording::of(inputs, outputs, bytes);
  if (recording) { // what was made will not run
    count_launches({-recording->count().launches, -bytes});
  }
  return recording;
}

// Whether steps of these can be recorded: one new position, products that are
// all gemv kernels, and so an attention that is decode_attention.
bool can_use_decoder_step(const ops::DecoderInput& in, mx::Stream s) {
  const auto& x = in.x;
  auto takes = [&](const ops::DecoderRun& run) {
    const auto& [layer, cache, watch] = run;
    return !cache->eviction && can_use_gemv(x, layer->qkv.w, s) &&
        can_use_gemv(x, layer->out.w, s) && can_use_gemv(x, layer->up.w, s) &&
        can_use_gemv(x, layer->down.w, s);
  };
  return x.ndim() == 3 && x.shape(1) == 1 && !in.runs.empty() &&
      std::all_of(in.runs.begin(), in.runs.end(), takes);
}

// Steps that make the same launches, as those of an utterance do until its
// positions take one more part, are built once and repeated.
ops::DecoderOutput decoder_step(const ops::DecoderInput& in, mx::Stream s) {
  auto& first = *in.runs.front().cache;
  auto step = // running the layers takes it away
      std::static_pointer_cast<DecoderStep>(first.step);
  if (!can_repeat(in.runs) || !step || !step->is_like(in, s)) {
    auto out = backends::decoder_layers(in, s);
    first.step = std::make_shared<DecoderStep>(in, s);
    return out;
  }
  Arrays inputs{
      in.x,
      cache_position(in.past, first.keys.shape(2), s),
      *in.runs.back().cache->written};
  if (!step->recording) {
    ops::DecoderOutput made{in.x, {}};
    step->recording = record(in, inputs, made, s);
    first.step = step;
    if (!step->recording) {
      return made;
    }
  }
  Arrays made = Recording::replay(step->recording, inputs, s);
  set_written(in.runs, made.back());
  return {made[0], Arrays(made.begin() + 1, made.end() - 1)};
}

} // namespace

bool can_share_steps(
    const std::vector<ops::DecoderLayer>& layers,
    const ops::Projection& head,
    mx::Stream s) {
  auto takes = [&](const ops::DecoderLayer& layer) {
    return can_use_gemv(layer.qkv.w, s) && can_use_gemv(layer.out.w, s) &&
        can_use_gemv(layer.up.w, s) && can_use_gemv(layer.down.w, s);
  };
  return can_use_gemv(head.w, s) && std::ranges::all_of(layers, takes);
}

ops::DecoderSteps decoder_steps(
    const std::vector<ops::DecoderInput>& sequences,
    mx::Stream s) {
  int count = sequences.size();
  Arrays inputs, positions;
  for (const auto& each : sequences) {
    const auto& keys = each.runs[0].cache->keys;
    inputs.push_back(each.x);
    positions.push_back(cache_position(each.past, keys.shape(2), s));
  }
  auto place = mx::concatenate(positions, 0, s);
  ops::DecoderSteps out{mx::concatenate(inputs, 0, s), {}};
  out.weights.resize(count);
  for (size_t i = 0; i < sequences[0].runs.size(); ++i) {
    const auto& layer = *sequences[0].runs[i].layer;
    auto qkv = gemv(
        out.x,
        layer.qkv.w,
        {.norm = &layer.attention_norm,
         .epilogue = {.bias = layer.qkv.b},
         .sequences = count},
        s);
    std::vector<StepSequence> steps;
    for (const auto& each : sequences) {
      const auto& run = each.runs[i];
      steps.push_back({*run.cache, each.past, run.watch});
    }
    auto attention = step_attention(
        qkv, sequences[0].frequencies, steps, place, layer.out, out.x, s);
    auto weights = attention.weights.begin();
    for (int u = 0; u < count; ++u) {
      const auto& run = sequences[u].runs[i];
      *run.cache = {run.cache->keys, run.cache->values, attention.written};
      auto end = weights + run.watch.heads.size();
      out.weights[u].insert(out.weights[u].end(), weights, end);
      weights = end;
    }
    out.x = decoder_gemvs(attention.out, layer, count, s);
  }
  return out;
}

ops::DecoderOutput decoder_layers(const ops::DecoderInput& in, mx::Stream s) {
  return can_use_decoder_step(in, s) ? decoder_step(in, s)
                                     : backends::decoder_layers(in, s);
}

} // namespace nightingale::gpu
