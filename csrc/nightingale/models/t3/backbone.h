#pragma once

#include <vector>

#include "nightingale/models/t3/backbone_weights.h"
#include "nightingale/models/t3/config.h"
#include "nightingale/models/t3/kv_cache.h"

namespace nightingale {

// Asks a forward pass for the weights that the aligned heads give to the text.
struct TextAttention {
  int begin; // first position of the text
  int count;
  int rows; // of the last queries
  std::vector<mx::array> weights; // filled: one [rows, count] per head
  const std::vector<AlignmentHead>* heads = nullptr; // null: the aligned ones
};

// The stack of layers.
class Backbone {
 public:
  // dtype: of the caches, where nothing else is asked for
  Backbone(BackboneWeights weights, const T3Config& config, mx::Dtype dtype);

  // An Error where the options cannot be had on `s`. Before the first cache.
  void keep_cache(const KvOptions& options, mx::Stream s);

  const KvOptions& kv() const {
    return kv_;
  }

  KvCache make_cache(int batch, int capacity, mx::Stream s) const;

  // Bytes of one position of one row in such a cache.
  size_t position_bytes() const;

  // A cache of `batch` rows that all begin as `prefix`, a cache of one, does.
  KvCache fork(const KvCache& prefix, int batch, int capacity, mx::Stream s)
      const;

  // Runs T new positions and appends them to the cache.
  // x: [B, T, hidden] → [B, T, hidden], before the last norm
  mx::array forward(
      const mx::array& x,
      KvCache& cache,
      TextAttention* text_attention,
      mx::Stream s) const;

  // The same by some of the layers, in this order.
  mx::array forward_layers(
      const mx::array& x,
      KvCache& cache,
      const std::vector<int>& layers,
      TextAttention* text_attention,
      mx::Stream s) const;

  // Whether forward_together and a product with `head` give each utterance what
  // it has alone.
  bool shares_steps(const ops::Projection& head, mx::Stream s) const {
    return ops::can_share_steps(layers_, head, s);
  }

  // One position of each of several utterances: what is multiplied, is
  // multiplied for all of them at once, so that the weights are read once.
  // x: [rows, 1, hidden] of each; text_attention: as many, which may be null
  // → [R, 1, hidden], the rows of each utterance in turn
  mx::array forward_together(
      const std::vector<mx::array>& x,
      const std::vector<KvCache*>& caches,
      const std::vector<TextAttention*>& text_attention,
      mx::Stream s) const;

  // The last norm and a product with `head`. x: [..., hidden]
  mx::array
  read_out(const mx::array& x, const ops::Projection& head, mx::Stream s) const;

  // Bytes of the matrices, which one decoding step reads.
  size_t step_bytes() const;

 private:
  // The heads of one layer that `text` asks for, or none without it.
  ops::AttentionWatch watch_for(int layer, const TextAttention* text) const;

  int heads_;
  mx::Dtype dtype_;
  KvOptions kv_;
  std::vector<AlignmentHead> alignment_heads_;
  std::vector<ops::DecoderLayer> layers_;
  ops::Norm norm_;
  std::optional<mx::array> frequencies_;
};

} // namespace nightingale
