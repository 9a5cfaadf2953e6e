#include "nightingale/models/t3/t3.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"
#include "nightingale/ops/embedding.h"

namespace nightingale {

namespace {

// In every checkpoint, and of no use when speaking.
const std::vector<std::string> kUnused{
    "text_head.weight",
    "tfmr.embed_tokens.weight"};

const std::string kHead = "speech_head.weight";

// The bits to load with: those of a quantized file, or those asked for; 0 for
// neither.
int wanted_bits(const TensorFile& file, std::optional<int> bits) {
  int stored = file.fewest_bits();
  if (bits && stored != 0 && *bits != stored) {
    throw Error(
        file.path() + " is quantized to " + std::to_string(stored) +
        " bits, which cannot be loaded as " + std::to_string(*bits) +
        ": ask for none or " + std::to_string(stored) +
        ", or load the checkpoint it was made of");
  }
  return bits.value_or(stored);
}

mx::Dtype default_dtype(const TensorFile& file, int bits) {
  auto stored = stored_dtype(file, "speech_emb.weight");
  return bits != 0 && stored == mx::float32 ? mx::float16 : stored;
}

mx::array ids(const std::vector<int>& values) {
  return mx::array(values.data(), {static_cast<int>(values.size())});
}

// Rows [begin, begin + count) of a position table: [1, count, hidden].
mx::array
positions(const mx::array& table, int begin, int count, mx::Stream s) {
  std::vector<int> range(count);
  std::iota(range.begin(), range.end(), begin);
  return mx::expand_dims(ops::embedding(table, ids(range), s), 0, s);
}

void check_range(
    const std::vector<int>& tokens,
    int vocabulary,
    const char* what) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || tokens[i] >= vocabulary) {
      throw std::invalid_argument(
          std::string(what) + "[" + std::to_string(i) + "] is " +
          std::to_string(tokens[i]) + "; this model has ids 0 to " +
          std::to_string(vocabulary - 1));
    }
  }
}

void check_speech(const std::vector<int>& tokens, const T3Config& config) {
  require(
      !tokens.empty(),
      "speech_tokens is empty; its first entry should be " +
          std::to_string(kStartSpeech));
  check_range(tokens, config.speech_vocabulary, "speech_tokens");
  require(
      static_cast<int>(tokens.size()) <= config.speech_positions,
      std::to_string(tokens.size()) +
          " speech tokens; this model has positions for " +
          std::to_string(config.speech_positions));
}

} // namespace

T3::T3(Weights& weights, const T3Config& config, int bits, mx::Stream s)
    : config_(config),
      stream_(s),
      dtype_(weights.dtype()),
      bits_(bits),
      conditioning_(
          LayerReader(
              weights,
              {s, dtype_, ops::vector_dtype(dtype_, s)},
              "cond_enc."),
          config),
      backbone_(weights, config, bits, ops::vector_dtype(dtype_, s), s),
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
          {config.speech_positions, config.hidden})),
      speech_head_(weights.take_matrix(
          {kHead},
          {config.speech_vocabulary, config.hidden},
          t3_bits(kHead, bits),
          s)) {
  weight_bytes_ = weights.nbytes();
}

T3 T3::load(
    std::shared_ptr<const TensorFile> file,
    std::optional<mx::Dtype> dtype,
    std::optional<int> bits,
    mx::Stream s,
    std::vector<std::string>* unknown,
    const std::optional<std::string>& settings_of) {
  int kept = wanted_bits(*file, bits);
  T3Config config = T3Config::of(*file, settings_of.value_or(file->path()));
  Weights weights(file, dtype.value_or(default_dtype(*file, kept)));
  T3 model(weights, config, kept, s);
  if (unknown) {
    *unknown = weights.unused(kUnused);
  }
  return model;
}

void T3::check(const std::vector<int>& text_tokens) const {
  require(!text_tokens.empty(), "there are no text tokens to speak");
  check_range(text_tokens, config_.text_vocabulary, "text_tokens");
  int most = config_.text_positions - 2;
  require(
      static_cast<int>(text_tokens.size()) <= most,
      "the text has " + std::to_string(text_tokens.size()) +
          " tokens; this model takes " + std::to_string(most) +
          " at a time: split it into sentences");
}

void T3::check(const T3Voice& voice) const {
  int size = voice.speaker.size();
  require(
      size == config_.speaker_size,
      "the voice's speaker embedding has " + std::to_string(size) +
          " values; this model expects " +
          std::to_string(config_.speaker_size));
  require(
      std::ranges::all_of(
          voice.speaker, [](float x) { return std::isfinite(x); }),
      "the voice's speaker embedding holds values that are not finite");
  require(
      std::isfinite(voice.emotion) && voice.emotion >= 0.0f,
      "exaggeration must be 0 or more, not " + std::to_string(voice.emotion));
  int prompt = voice.prompt_tokens.size();
  require(
      prompt <= config_.speech_positions,
      "the voice's prompt has " + std::to_string(prompt) +
          " tokens; this model takes " +
          std::to_string(config_.speech_positions));
  check_range(
      voice.prompt_tokens,
      config_.speech_vocabulary,
      "the voice's prompt_tokens");
}

mx::array T3::conditioning(const T3Voice& voice) const {
  check(voice);
  std::optional<mx::array> prompt;
  if (!voice.prompt_tokens.empty()) {
    prompt = speech(ids(voice.prompt_tokens), 0, 1);
  }
  return conditioning_.encode(voice, prompt, stream_);
}

KvCache T3::condition(const T3Voice& voice) const {
  auto positions = conditioning(voice);
  KvCache cache = backbone_.make_cache(1, positions.shape(1), stream_);
  backbone_.forward(positions, cache, nullptr, stream_);
  std::vector<mx::array> filled;
  for (const auto& layer : cache.layers) {
    filled.insert(filled.end(), {layer.keys, layer.values});
    if (layer.written) {
      filled.push_back(*layer.written);
    }
  }
  mx::eval(filled);
  return cache;
}

mx::array T3::prompt(const std::vector<int>& text_tokens, int rows) const {
  check(text_tokens);
  const auto& s = stream_;
  std::vector<int> framed{kStartText};
  framed.insert(framed.end(), text_tokens.begin(), text_tokens.end());
  framed.push_back(kStopText);
  auto places = positions(text_positions_, 0, framed.size(), s);
  auto words =
      mx::expand_dims(ops::embedding(text_table_, ids(framed), s), 0, s);
  auto start = speech(ids({kStartSpeech}), 0, 1);
  auto first = mx::concatenate({mx::add(words, places, s), start}, 1, s);
  if (rows == 1) {
    return first;
  }
  auto second = mx::concatenate({places, start}, 1, s);
  return mx::concatenate({first, second}, 0, s);
}

mx::array T3::speech(const mx::array& tokens, int position, int rows) const {
  const auto& s = stream_;
  auto sounds = mx::expand_dims(ops::embedding(speech_table_, tokens, s), 0, s);
  auto places = positions(speech_positions_, position, tokens.size(), s);
  auto one = mx::add(sounds, places, s);
  return rows == 1 ? one
                   : mx::concatenate(std::vector<mx::array>(rows, one), 0, s);
}

mx::array T3::next_speech(const mx::array& token, int position, int rows)
    const {
  return ops::embed_token(
      {speech_table_, speech_positions_, token, position, rows}, stream_);
}

KvCache T3::begin(const KvCache& voice, int rows, int room) const {
  return backbone_.fork(voice, rows, voice.length + room, stream_);
}

mx::array T3::forward(
    const mx::array& x,
    KvCache& cache,
    int count,
    TextAttention* text_attention) const {
  auto hidden = backbone_.forward(x, cache, text_attention, stream_);
  int length = hidden.shape(1);
  auto last = count == length ? hidden
                              : mx::slice(
                                    hidden,
                                    {0, length - count, 0},
                                    {hidden.shape(0), length, hidden.shape(2)},
                                    stream_);
  return backbone_.read_out(last, speech_head_, stream_);
}

std::vector<mx::array> T3::forward_together(
    const std::vector<mx::array>& x,
    const std::vector<KvCache*>& caches,
    const std::vector<TextAttention*>& text_attention) const {
  auto hidden = backbone_.forward_together(
      mx::concatenate(x, 0, stream_), caches, text_attention, stream_);
  auto logits = backbone_.read_out(hidden, speech_head_, stream_);
  std::vector<mx::array> each;
  int begin = 0, vocabulary = config_.speech_vocabulary;
  for (const auto& one : x) {
    int end = begin + one.shape(0);
    auto rows = mx::slice(logits, {begin, 0, 0}, {end, 1, vocabulary}, stream_);
    each.push_back(mx::reshape(rows, {end - begin, vocabulary}, stream_));
    begin = end;
  }
  return each;
}

mx::array T3::forward_layers(
    const mx::array& x,
    KvCache& cache,
    const std::vector<int>& layers) const {
  auto hidden = backbone_.forward_layers(x, cache, layers, nullptr, stream_);
  return backbone_.read_out(hidden, speech_head_, stream_);
}

mx::array T3::logits(
    const std::vector<int>& text_tokens,
    const std::vector<int>& speech_tokens,
    const KvCache& voice,
    int chunk) const {
  check_speech(speech_tokens, config_);
  require(chunk >= 0, "chunk must be 0 or more, not " + std::to_string(chunk));
  int count = speech_tokens.size();
  auto tokens = ids(speech_tokens);
  auto x = prompt(text_tokens, 2);
  KvCache cache = begin(voice, 2, x.shape(1) + count);
  std::vector<mx::array> logits;
  for (int done = 0; done < count;) {
    int size = chunk == 0 ? count : done == 0 ? 1 : chunk;
    size = std::min(size, count - done);
    auto part = mx::slice(tokens, {done}, {done + size}, stream_);
    auto embedded = speech(part, done, 2);
    if (done == 0) {
      embedded = mx::concatenate({x, embedded}, 1, stream_);
    }
    logits.push_back(forward(embedded, cache, size, nullptr));
    mx::eval(logits.back());
    done += size;
  }
  return mx::concatenate(logits, 1, stream_);
}

mx::array T3::text_weights(
    const std::vector<int>& text_tokens,
    const std::vector<int>& speech_tokens,
    const KvCache& voice) const {
  check_speech(speech_tokens, config_);
  if (config_.settings.alignment_heads.empty()) {
    throw Error("this T3 has no alignment heads, which follow the text");
  }
  int framed = text_tokens.size() + 2, count = speech_tokens.size();
  auto x = mx::concatenate(
      {prompt(text_tokens, 1), speech(ids(speech_tokens), 0, 1)}, 1, stream_);
  KvCache cache = begin(voice, 1, x.shape(1));
  TextAttention text{voice.length, framed, count + 1, {}};
  forward(x, cache, 1, &text);
  return mx::stack(text.weights, 0, stream_);
}

} // namespace nightingale
