#include "nightingale/models/t3/inputs.h"

#include <numeric>

#include "mlx/ops.h"
#include "nightingale/ops/embedding.h"

namespace nightingale {

namespace {

mx::array ids(const std::vector<int>& values) {
  return mx::array(values.data(), {static_cast<int>(values.size())});
}

// Rows of a table: [1, n, hidden]
mx::array rows_of(const mx::array& table, const mx::array& rows, mx::Stream s) {
  return mx::expand_dims(ops::embedding(table, rows, s), 0, s);
}

// Rows [begin, begin + count) of a position table: [1, count, hidden].
mx::array
positions(const mx::array& table, int begin, int count, mx::Stream s) {
  std::vector<int> range(count);
  std::iota(range.begin(), range.end(), begin);
  return rows_of(table, ids(range), s);
}

mx::array repeated(const mx::array& one, int rows, mx::Stream s) {
  return rows == 1 ? one
                   : mx::concatenate(std::vector<mx::array>(rows, one), 0, s);
}

LayerReader conditioning_reader(Weights& weights, mx::Stream s) {
  auto dtype = weights.dtype();
  return LayerReader(
      weights, {s, dtype, ops::vector_dtype(dtype, s)}, "cond_enc.");
}

// Text and speech have position tables of their own, and the voice none.
class LlamaInputs : public T3Inputs {
 public:
  LlamaInputs(Weights& weights, const T3Config& config, mx::Stream s)
      : stream_(s),
        conditioning_(conditioning_reader(weights, s), config),
        text_table_(weights.take(
            "text_emb.weight",
            {config.text_vocabulary, config.hidden})),
        text_positions_(weights.take(
            "text_pos_emb.emb.weight",
            {config.text_positions, config.hidden})),
        speech_table_(weights.take(
            "speech_emb.weight",
            {config.speech_vocabulary, config.hidden})),
        speech_positions_(weights.take(
            "speech_pos_emb.emb.weight",
            {config.speech_positions, config.hidden})) {}

  mx::array voice(const T3Voice& voice) const override {
    std::optional<mx::array> prompt;
    if (!voice.prompt_tokens.empty()) {
      prompt = speech(ids(voice.prompt_tokens), {0, 0}, 1);
    }
    return conditioning_.encode(voice, prompt, stream_);
  }

  // The text between its start and stop tokens, the first start of speech. The
  // second row's text is zeroed, its positions are kept.
  mx::array text(const std::vector<int>& tokens, int, int rows) const override {
    const auto& s = stream_;
    std::vector<int> framed{kStartText};
    framed.insert(framed.end(), tokens.begin(), tokens.end());
    framed.push_back(kStopText);
    auto places = positions(text_positions_, 0, framed.size(), s);
    auto words = rows_of(text_table_, ids(framed), s);
    auto start = speech(ids({kStartSpeech}), {0, 0}, 1);
    auto first = mx::concatenate({mx::add(words, places, s), start}, 1, s);
    if (rows == 1) {
      return first;
    }
    auto second = mx::concatenate({places, start}, 1, s);
    return mx::concatenate({first, second}, 0, s);
  }

  mx::array speech(const mx::array& tokens, SpeechPlace place, int rows)
      const override {
    const auto& s = stream_;
    auto sounds = rows_of(speech_table_, tokens, s);
    auto places = positions(speech_positions_, place.spoken, tokens.size(), s);
    return repeated(mx::add(sounds, places, s), rows, s);
  }

  mx::array next_speech(const mx::array& token, SpeechPlace place, int rows)
      const override {
    return ops::embed_token(
        {speech_table_, speech_positions_, token, place.spoken, rows}, stream_);
  }

 private:
  mx::Stream stream_;
  Conditioning conditioning_;
  mx::array text_table_, text_positions_;
  mx::array speech_table_, speech_positions_;
};

// One position table counts from the speaker's row to the last token.
class Gpt2Inputs : public T3Inputs {
 public:
  Gpt2Inputs(Weights& weights, const T3Config& config, mx::Stream s)
      : stream_(s),
        speaker_(
            conditioning_reader(weights, s)
                .linear({"spkr_enc"}, {config.hidden, config.speaker_size})),
        text_table_(weights.take(
            "text_emb.weight",
            {config.text_vocabulary, config.hidden})),
        speech_table_(weights.take(
            "speech_emb.weight",
            {config.speech_vocabulary, config.hidden})),
        positions_(weights.take(
            "tfmr.wpe.weight",
            {config.positions, config.hidden})) {}

  mx::array voice(const T3Voice& voice) const override {
    const auto& s = stream_;
    int size = voice.speaker.size();
    mx::array speaker(voice.speaker.data(), {1, 1, size}, speaker_.b.dtype());
    auto x = speaker_(speaker, {}, s);
    if (!voice.prompt_tokens.empty()) {
      auto prompt = rows_of(speech_table_, ids(voice.prompt_tokens), s);
      x = mx::concatenate({x, prompt}, 1, s);
    }
    return placed(x, 0);
  }

  mx::array text(const std::vector<int>& tokens, int past, int rows)
      const override {
    auto x = placed(rows_of(text_table_, ids(tokens), stream_), past);
    return repeated(x, rows, stream_);
  }

  mx::array speech(const mx::array& tokens, SpeechPlace place, int rows)
      const override {
    auto x = placed(rows_of(speech_table_, tokens, stream_), place.past);
    return repeated(x, rows, stream_);
  }

  mx::array next_speech(const mx::array& token, SpeechPlace place, int rows)
      const override {
    return ops::embed_token(
        {speech_table_, positions_, token, place.past, rows}, stream_);
  }

 private:
  // x: [1, n, hidden] at the positions [past, past + n)
  mx::array placed(const mx::array& x, int past) const {
    auto places = positions(positions_, past, x.shape(1), stream_);
    return mx::add(x, places, stream_);
  }

  mx::Stream stream_;
  Linear speaker_;
  mx::array text_table_, speech_table_, positions_;
};

} // namespace

std::shared_ptr<const T3Inputs>
T3Inputs::read(Weights& weights, const T3Config& config, mx::Stream s) {
  if (config.backbone == BackboneKind::gpt2) {
    return std::make_shared<Gpt2Inputs>(weights, config, s);
  }
  return std::make_shared<LlamaInputs>(weights, config, s);
}

} // namespace nightingale
