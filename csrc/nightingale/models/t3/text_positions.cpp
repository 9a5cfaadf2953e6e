#include "nightingale/models/t3/text_positions.h"

#include "mlx/ops.h"
#include "nightingale/family.h"
#include "nightingale/ops/alignment.h"

namespace nightingale {

namespace {

// What each head gave to the text in the queries [begin, end).
std::vector<mx::array>
rows(const mx::array& weights, int begin, int end, const mx::Stream& s) {
  int text = weights.shape(2);
  std::vector<mx::array> heads;
  for (int head = 0; head < weights.shape(0); ++head) {
    auto row = mx::slice(weights, {head, begin, 0}, {head + 1, end, text}, s);
    heads.push_back(mx::reshape(row, {end - begin, text}, s));
  }
  return heads;
}

} // namespace

std::vector<int> text_positions(
    const T3& model,
    const std::vector<int>& text_tokens,
    const std::vector<int>& speech_tokens,
    const KvCache& voice) {
  if (speech_tokens.empty()) {
    return {};
  }
  const auto& s = model.stream();
  // Each token is spoken by the query of the one before it.
  std::vector<int> output{kStartSpeech};
  output.insert(output.end(), speech_tokens.begin(), speech_tokens.end() - 1);
  auto weights = model.text_weights(text_tokens, output, voice);
  auto logits = mx::zeros({model.config().speech_vocabulary}, mx::float32, s);
  auto state = ops::AlignmentState::start();
  int starts = model.config().traits().speech_starts;
  std::vector<int> positions;
  for (int step = 0; step < static_cast<int>(output.size()); ++step) {
    // The first step has all starts of speech.
    auto watched =
        rows(weights, step == 0 ? 0 : step + starts - 1, step + starts, s);
    auto token = mx::array(&output[step], {1});
    ops::AlignmentInput input{watched, logits, token, kStopSpeech};
    state = ops::alignment_step(input, state, s).state;
    state.marks.eval();
    positions.push_back(state.marks.data<int>()[ops::kTextPosition]);
  }
  return positions;
}

} // namespace nightingale
