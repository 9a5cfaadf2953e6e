#include "nightingale/models/t3/t3.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/error.h"

namespace nightingale {

namespace {

// In every checkpoint, and of no use when speaking.
const std::vector<std::string> kUnused{
    "text_head.weight",
    "tfmr.embed_tokens.weight",
    "tfmr.wte.weight"};

// Positions of a prompt that are computed in one pass. On the CPU that is a
// whole number of the blocks in which attention is computed, and the last part
// is more than the few rows that are computed in another way: so a prompt that
// is cut has the bits of one that is not.
constexpr int kCpuPromptPart = 64;
constexpr int kGpuPromptPart = 512;
constexpr int kLeastPromptPart = ops::kBatchInvariantRows + 1;

ops::Projection read_head(
    Weights& weights,
    const T3Config& config,
    int bits,
    mx::Dtype vectors,
    mx::Stream s) {
  const std::string w = "speech_head.weight", b = "speech_head.bias";
  int vocabulary = config.speech_vocabulary;
  ops::Projection head = weights.take_matrix(
      {w}, {vocabulary, config.hidden}, t3_bits(w, bits), s);
  if (config.backbone == BackboneKind::gpt2) {
    head.b = weights.take(b, {vocabulary}, vectors);
  }
  return head;
}

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
      inputs_(T3Inputs::read(weights, config, s)),
      backbone_(
          BackboneWeights::read(
              weights,
              config,
              bits,
              ops::vector_dtype(dtype_, s),
              s),
          config,
          dtype_),
      speech_head_(
          read_head(weights, config, bits, ops::vector_dtype(dtype_, s), s)) {
  weight_bytes_ = weights.nbytes();
}

T3 T3::load(
    std::shared_ptr<const TensorFile> file,
    std::optional<mx::Dtype> dtype,
    std::optional<int> bits,
    mx::Stream s,
    std::vector<std::string>* unknown,
    const std::optional<std::string>& settings_of,
    const std::optional<std::string>& preset) {
  int kept = wanted_bits(*file, bits);
  T3Config config =
      T3Config::of(*file, settings_of.value_or(file->path()), preset);
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
  int most = config_.text_positions - config_.traits().text_frame;
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
  // A perceiver makes the same number of rows of any prompt.
  int most = config_.perceiver_queries > 0 ? config_.speech_positions
                                           : config_.traits().prompt_tokens;
  require(
      prompt <= most,
      "the voice's prompt has " + std::to_string(prompt) +
          " tokens; this model takes " + std::to_string(most));
  check_range(
      voice.prompt_tokens,
      config_.speech_vocabulary,
      "the voice's prompt_tokens");
}

mx::array T3::conditioning(const T3Voice& voice) const {
  check(voice);
  return inputs_->voice(voice);
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

mx::array T3::prompt(
    const std::vector<int>& text_tokens,
    const KvCache& voice,
    int rows) const {
  check(text_tokens);
  return inputs_->text(text_tokens, voice.length, rows);
}

KvCache T3::begin(const KvCache& voice, int rows, int room) const {
  int capacity = voice.length + room, most = config_.positions;
  require(
      most == 0 || capacity <= most,
      "voice, text and max_tokens take " + std::to_string(capacity) +
          " positions; this model has " + std::to_string(most));
  return backbone_.fork(voice, rows, capacity, stream_);
}

int T3::prompt_part(int left) const {
  // A cache with a budget keeps the whole prompt, which it must see at once.
  bool whole = kv().budget > 0.0f;
  int part = ops::on_cpu(stream_) ? kCpuPromptPart : kGpuPromptPart;
  return whole || left < part + kLeastPromptPart ? left : part;
}

mx::array T3::read_prompt(const mx::array& x, KvCache& cache) const {
  return backbone_.forward(x, cache, nullptr, stream_);
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
  auto rows_of = [&](const mx::array& all, int begin, int end) {
    mx::Shape to{end, 1, all.shape(2)};
    return mx::slice(all, {begin, 0, 0}, to, stream_);
  };
  auto hidden = backbone_.forward_together(x, caches, text_attention, stream_);
  // A GPU has a kernel for the rows of one utterance only.
  bool at_once = ops::is_batch_invariant(stream_);
  auto logits =
      at_once ? backbone_.read_out(hidden, speech_head_, stream_) : hidden;
  std::vector<mx::array> each;
  int begin = 0;
  for (const auto& one : x) {
    int end = begin + one.shape(0);
    auto rows = rows_of(logits, begin, end);
    if (!at_once) {
      rows = backbone_.read_out(rows, speech_head_, stream_);
    }
    each.push_back(
        mx::reshape(rows, {end - begin, config_.speech_vocabulary}, stream_));
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
  int rows = config_.traits().guidance ? 2 : 1;
  auto x = prompt(text_tokens, voice, rows);
  KvCache cache = begin(voice, rows, x.shape(1) + count);
  std::vector<mx::array> logits;
  for (int done = 0; done < count;) {
    int size = chunk == 0 ? count : done == 0 ? 1 : chunk;
    size = std::min(size, count - done);
    auto part = mx::slice(tokens, {done}, {done + size}, stream_);
    int past = cache.length + (done == 0 ? x.shape(1) : 0);
    auto embedded = inputs_->speech(part, {done, past}, rows);
    if (done == 0) {
      embedded = mx::concatenate({x, embedded}, 1, stream_);
    }
    logits.push_back(forward(embedded, cache, size, nullptr));
    mx::eval(logits.back());
    done += size;
  }
  return mx::concatenate(logits, 1, stream_);
}

void T3::check_heads(const std::vector<AlignmentHead>& heads) const {
  for (auto [layer, head] : heads) {
    require(
        layer >= 0 && layer < config_.layers && head >= 0 &&
            head < config_.heads(),
        "the model has no head [" + std::to_string(layer) + ", " +
            std::to_string(head) + "]");
  }
}

mx::array T3::text_weights(
    const std::vector<int>& text_tokens,
    const std::vector<int>& speech_tokens,
    const KvCache& voice,
    const std::vector<AlignmentHead>& heads) const {
  check_speech(speech_tokens, config_);
  check_heads(heads);
  if (heads.empty() && config_.settings.alignment_heads.empty()) {
    throw Error("this T3 has no alignment heads, which follow the text");
  }
  const auto& traits = config_.traits();
  int framed = text_tokens.size() + traits.text_frame;
  int queries = speech_tokens.size() + traits.speech_starts - 1;
  auto before = prompt(text_tokens, voice, 1);
  SpeechPlace first{0, voice.length + before.shape(1)};
  auto speech = inputs_->speech(ids(speech_tokens), first, 1);
  auto x = mx::concatenate({before, speech}, 1, stream_);
  KvCache cache = begin(voice, 1, x.shape(1));
  TextAttention text{voice.length, framed, queries, {}};
  const auto& asked = heads.empty() ? config_.settings.alignment_heads : heads;
  text.heads = &asked;
  if (kv().budget > 0.0f) {
    backbone_.forward(x, cache, &text, stream_);
  } else {
    int last = 0; // layers that follow give nothing
    for (auto [layer, head] : asked) {
      last = std::max<int>(last, layer);
    }
    std::vector<int> layers(last + 1);
    std::iota(layers.begin(), layers.end(), 0);
    backbone_.forward_layers(x, cache, layers, &text, stream_);
  }
  return mx::stack(text.weights, 0, stream_);
}

} // namespace nightingale
