#include "nightingale/ops/gpu/decoder.h"

#include <algorithm>

#include "nightingale/ops/gpu/decode_attention.h"
#include "nightingale/ops/gpu/gemv.h"
#include "nightingale/ops/gpu/kernel.h"
#include "nightingale/ops/gpu/place.h"
#include "nightingale/ops/gpu/replay.h"

namespace nightingale::gpu {

namespace {

using Arrays = std::vector<mx::array>;

// What decides which launches a layer makes, and on which memory.
struct LayerLaunches {
  const ops::DecoderLayer* layer;
  std::uintptr_t keys, values;
  ops::AttentionWatch watch;

  bool operator==(const LayerLaunches&) const = default;
};

std::vector<LayerLaunches> launches_of(
    const std::vector<ops::DecoderRun>& runs) {
  std::vector<LayerLaunches> all;
  for (const auto& [layer, cache, watch] : runs) {
    all.push_back({layer, cache->keys.id(), cache->values.id(), watch});
  }
  return all;
}

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

  bool repeats(const DecoderStep& other) const {
    return layers == other.layers && parts == other.parts &&
        shape == other.shape && dtype == other.dtype && stream == other.stream;
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

bool takes_decoder_step(
    const mx::array& x,
    const std::vector<ops::DecoderRun>& runs,
    mx::Stream s) {
  auto takes = [&](const ops::DecoderRun& run) {
    const auto& [layer, cache, watch] = run;
    return !cache->eviction && takes_gemv(x, layer->qkv, s) &&
        takes_gemv(x, layer->out, s) && takes_gemv(x, layer->gate_up, s) &&
        takes_gemv(x, layer->down, s);
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
  auto step = std::make_shared<DecoderStep>(DecoderStep{
      launches_of(runs), attention_parts(past), x.shape(), x.dtype(), s});
  if (!can_repeat(runs) || !first.step || !first.step->repeats(*step)) {
    auto y = layers(x, weights);
    first.step = step;
    return y;
  }
  step = first.step;
  Arrays inputs{x, place_of(past, first.keys.shape(2), s), *last.written};
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
