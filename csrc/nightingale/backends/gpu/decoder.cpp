#include "nightingale/backends/gpu/decoder.h"

#include <algorithm>

#include "nightingale/backends/gpu/cache_position.h"
#include "nightingale/backends/gpu/decode_attention.h"
#include "nightingale/backends/gpu/gemv.h"
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

} // namespace

// A step that has been run.
struct DecoderStep {
  std::vector<LayerLaunches> layers;
  int parts;
  mx::Shape shape; // of x
  mx::Dtype dtype;
  mx::Stream stream;
  // None while nothing has been repeated.
  std::shared_ptr<const Recording> recording = nullptr;

  DecoderStep(
      const mx::array& x,
      const std::vector<ops::DecoderRun>& runs,
      int past,
      mx::Stream s)
      : layers(runs.begin(), runs.end()),
        parts(attention_parts(past)),
        shape(x.shape()),
        dtype(x.dtype()),
        stream(s) {}

  // Whether a step makes the same launches; asked for every token.
  bool is_like(
      const mx::array& x,
      const std::vector<ops::DecoderRun>& runs,
      int past,
      mx::Stream s) const {
    return parts == attention_parts(past) && shape == x.shape() &&
        dtype == x.dtype() && stream == s &&
        std::equal(
               layers.begin(),
               layers.end(),
               runs.begin(),
               runs.end(),
               [](const auto& one, const auto& run) {
                 return one.are_of(run);
               });
  }
};

namespace {

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

// Builds the step once more, this time to take it apart. Nothing where it could
// not be: then `made`, the result and the weights, is what was built, and else
// never to be evaluated.
std::shared_ptr<const Recording> record(
    const Arrays& inputs,
    const std::vector<ops::DecoderRun>& runs,
    const RunLayers& layers,
    Arrays& made) {
  long first = first_launches();
  set_written(runs, inputs.back());
  std::vector<mx::array> weights;
  made = {layers(inputs[0], weights)};
  made.insert(made.end(), weights.begin(), weights.end());
  if (first_launches() != first) {
    return nullptr;
  }
  Arrays outputs = made;
  outputs.push_back(*runs.back().cache->written);
  auto recording = Recording::of(inputs, outputs);
  if (recording) {
    count_launches(-recording->launches()); // which will not run
  }
  return recording;
}

} // namespace

bool can_use_decoder_step(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs,
    mx::Stream s) {
  auto takes = [&](const ops::DecoderRun& run) {
    const auto& [layer, cache, watch] = run;
    return !cache->eviction && can_use_gemv(x, layer->qkv, s) &&
        can_use_gemv(x, layer->out, s) && can_use_gemv(x, layer->gate_up, s) &&
        can_use_gemv(x, layer->down, s);
  };
  return x.ndim() == 3 && x.shape(1) == 1 && !runs.empty() &&
      std::all_of(runs.begin(), runs.end(), takes);
}

mx::array decoder_step(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs,
    int past,
    std::vector<mx::array>& weights,
    const RunLayers& layers,
    mx::Stream s) {
  auto& first = *runs.front().cache;
  auto& last = *runs.back().cache;
  auto step = first.step; // running the layers takes it away
  if (!can_repeat(runs) || !step || !step->is_like(x, runs, past, s)) {
    auto y = layers(x, weights);
    first.step = std::make_shared<DecoderStep>(x, runs, past, s);
    return y;
  }
  Arrays inputs{x, cache_position(past, first.keys.shape(2), s), *last.written};
  Arrays made;
  if (!step->recording) {
    step->recording = record(inputs, runs, layers, made);
    first.step = step;
  }
  if (step->recording) {
    made = Recording::replay(step->recording, inputs, s);
    set_written(runs, made.back());
    made.pop_back();
  }
  weights.insert(weights.end(), made.begin() + 1, made.end());
  return made[0];
}

} // namespace nightingale::gpu
