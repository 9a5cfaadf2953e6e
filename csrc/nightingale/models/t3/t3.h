#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/models/t3/backbone.h"
#include "nightingale/models/t3/config.h"
#include "nightingale/models/t3/inputs.h"

namespace nightingale {

// Text and a voice to speech tokens. Const after loading: all that changes
// while it speaks is in the caller's hands.
class T3 {
 public:
  // Reads `file` with its matrices as `dtype`, or as the file has them; with
  // `bits` (8 or 4), those that decoding reads are quantized, and without a
  // `dtype` the others are float16 where the file has float32. What is
  // quantized in the file stays so. The names of tensors it does not know are
  // put in `unknown`. Settings are those of `settings_of`, the path of what
  // `file` was made of, with `preset`.
  static T3 load(
      std::shared_ptr<const TensorFile> file,
      std::optional<mx::Dtype> dtype,
      std::optional<int> bits,
      mx::Stream s,
      std::vector<std::string>* unknown,
      const std::optional<std::string>& settings_of = std::nullopt,
      const std::optional<std::string>& preset = std::nullopt);

  const T3Config& config() const {
    return config_;
  }
  size_t weight_bytes() const {
    return weight_bytes_;
  }
  // Bytes of the weights that one decoding step reads.
  size_t step_bytes() const {
    return backbone_.step_bytes() + speech_head_.w.nbytes();
  }
  // Bytes that a position takes in the KV cache of an utterance.
  size_t position_bytes() const {
    return (config_.traits().guidance ? 2 : 1) * backbone_.position_bytes();
  }
  mx::Dtype dtype() const {
    return dtype_;
  }
  // The fewest of any quantized matrix; 0 where there is none.
  int bits() const {
    return bits_;
  }
  const mx::Stream& stream() const {
    return stream_;
  }

  // How caches are kept from now on. An Error where that cannot be had on this
  // device.
  void keep_cache(const KvOptions& options) {
    backbone_.keep_cache(options, stream_);
  }
  const KvOptions& kv() const {
    return backbone_.kv();
  }

  // The voice's own positions, which come first: [1, at least 1, hidden]
  mx::array conditioning(const T3Voice& voice) const;

  // The cache after a voice's positions. They are the same for both guidance
  // rows and for every text, so they are computed once: a cache of one row.
  KvCache condition(const T3Voice& voice) const;

  // The positions between the voice, as condition() gave it, and the speech,
  // for each guidance row: as T3Inputs::text. rows: 1 or 2.
  mx::array prompt(
      const std::vector<int>& text_tokens,
      const KvCache& voice,
      int rows) const;

  const T3Inputs& inputs() const {
    return *inputs_;
  }

  // `room` more positions for each of `rows` that begin with the voice's cache.
  KvCache begin(const KvCache& voice, int rows, int room) const;

  // How many of the next `left` positions of a prompt are computed in one pass.
  // It depends on nothing else, so that the cuts, and with them the bits of the
  // results, are the same whatever else is spoken.
  int prompt_part(int left) const;

  // Appends x: [rows, T, hidden] to the cache; an array that is there when they
  // are.
  mx::array read_prompt(const mx::array& x, KvCache& cache) const;

  // Appends x: [rows, T, hidden] to the cache; logits of the last `count`
  // positions: [rows, count, speech_vocabulary]
  mx::array forward(
      const mx::array& x,
      KvCache& cache,
      int count,
      TextAttention* text_attention) const;

  // Whether forward_together gives each utterance the logits it has alone.
  bool shares_steps() const {
    return backbone_.shares_steps(speech_head_, stream_);
  }

  // One position of each of several utterances, as Backbone's: the logits of
  // each, [rows, speech_vocabulary]. x: [rows, 1, hidden] of each
  std::vector<mx::array> forward_together(
      const std::vector<mx::array>& x,
      const std::vector<KvCache*>& caches,
      const std::vector<TextAttention*>& text_attention) const;

  // The logits of x: [rows, 1, hidden] by some of the layers, which is what a
  // draft takes for the model's: [rows, 1, speech_vocabulary]
  mx::array forward_layers(
      const mx::array& x,
      KvCache& cache,
      const std::vector<int>& layers) const;

  // Teacher-forced logits [rows, n, speech_vocabulary], two rows with guidance:
  // out[:, i] follows
  // speech_tokens[: i + 1], whose first stands at position 0. The tokens after
  // the first are output `chunk` at a time; 0 feeds everything at once. voice:
  // what condition() gave.
  mx::array logits(
      const std::vector<int>& text_tokens,
      const std::vector<int>& speech_tokens,
      const KvCache& voice,
      int chunk) const;

  // An Error where the model has not all of these heads.
  void check_heads(const std::vector<AlignmentHead>& heads) const;

  // What the aligned heads give to the text, start and stop included, when
  // these tokens follow it, as they do for logits(): [heads, n + 1, text + 2],
  // of the prompt's own start of speech, then of each speech token. Where the
  // prompt has neither, it is [heads, n, text].
  // heads: others than the aligned ones, by layer
  mx::array text_weights(
      const std::vector<int>& text_tokens,
      const std::vector<int>& speech_tokens,
      const KvCache& voice,
      const std::vector<AlignmentHead>& heads = {}) const;

 private:
  T3(Weights& weights, const T3Config& config, int bits, mx::Stream s);

  void check(const std::vector<int>& text_tokens) const;
  void check(const T3Voice& voice) const;

  T3Config config_;
  mx::Stream stream_;
  mx::Dtype dtype_;
  int bits_;
  size_t weight_bytes_ = 0;
  std::shared_ptr<const T3Inputs> inputs_;
  Backbone backbone_;
  ops::Projection speech_head_;
};

} // namespace nightingale
