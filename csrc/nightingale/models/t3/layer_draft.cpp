#include <algorithm>
#include <string>

#include "mlx/ops.h"
#include "nightingale/models/t3/draft.h"
#include "nightingale/models/t3/speech_tokens.h"

namespace nightingale {

namespace {

constexpr int kWholeEnds = 2; // layers kept at either end

class LayerDraft : public Draft {
 public:
  LayerDraft(std::shared_ptr<const T3> model, std::vector<int> kept, int rows)
      : model_(std::move(model)), kept_(std::move(kept)), rows_(rows) {}

  std::vector<int> propose(const SpokenSoFar& spoken, int count) override {
    int length = spoken.cache.length;
    auto logits_after = [&](const mx::array& token, int position) {
      auto x = model_->next_speech(token, position, rows_);
      auto logits = model_->forward_layers(x, spoken.cache, kept_);
      return mx::reshape(logits, {rows_, -1}, model_->stream());
    };
    auto tokens =
        propose_tokens(spoken.sampler, count, logits_after, model_->stream());
    spoken.cache.trim(length);
    return tokens;
  }

 private:
  std::shared_ptr<const T3> model_;
  std::vector<int> kept_;
  int rows_;
};

} // namespace

MakeDraft layer_draft(std::shared_ptr<const T3> model, std::vector<int> kept) {
  int layers = model->config().layers;
  for (int layer : kept) {
    if (layer < 0 || layer >= layers) {
      throw std::invalid_argument(
          "a draft cannot keep layer " + std::to_string(layer) +
          "; this model has layers 0 to " + std::to_string(layers - 1));
    }
  }
  std::ranges::sort(kept);
  if (kept.empty() || std::ranges::adjacent_find(kept) != kept.end()) {
    throw std::invalid_argument(
        "a draft must keep one layer at least, and none twice");
  }
  return [model = std::move(model),
          kept = std::move(kept)](const SpeechRequest& request) {
    return std::make_unique<LayerDraft>(model, kept, request.rows());
  };
}

std::vector<int> draft_layers(int layers) {
  std::vector<int> kept;
  for (int i = 0; i < layers; ++i) {
    if (i < kWholeEnds || i >= layers - kWholeEnds || i % 2 == 0) {
      kept.push_back(i);
    }
  }
  return kept;
}

} // namespace nightingale
