#include "nightingale/engine/session.h"

#include <algorithm>
#include <utility>

#include "nightingale/engine/host_floats.h"
#include "nightingale/engine/stopwatch.h"
#include "nightingale/engine/text_path.h"
#include "nightingale/ops/alignment.h"

namespace nightingale {

namespace {

// Segments spoken at once: as many as have independent rows, two each with
// guidance.
constexpr int kTogether = 8;
constexpr int64_t kLongestSilence = kSampleRate; // samples in a chunk

// The start of speech and all tokens but the last: the queries that chose them.
std::vector<int> queries_of(const std::vector<int>& tokens) {
  std::vector<int> queries{kStartSpeech};
  queries.insert(queries.end(), tokens.begin(), tokens.end() - 1);
  return queries;
}

// [heads, queries, framed text] to the mean over the heads of the last `count`
// queries' weights on the text itself.
std::vector<float> mean_weights(const mx::array& weights, int count, int text) {
  int heads = weights.shape(0), queries = weights.shape(1);
  int framed = weights.shape(2), begin = (framed - text) / 2;
  auto values = host_floats(weights);
  std::vector<float> mean(size_t(count) * text, 0.0f);
  for (int head = 0; head < heads; ++head) {
    for (int query = 0; query < count; ++query) {
      const float* row = values.data() +
          (size_t(head) * queries + queries - count + query) * framed + begin;
      for (int i = 0; i < text; ++i) {
        mean[size_t(query) * text + i] += row[i];
      }
    }
  }
  for (float& value : mean) {
    value /= heads;
  }
  return mean;
}

} // namespace

int count_astray(
    const std::vector<int>& tokens,
    const std::vector<int>& positions,
    int end,
    int forced) {
  int size = tokens.size(), count = 0;
  while (count < std::min(kLookaheadTokens, size - 1)) {
    int last = size - 1 - count;
    bool repeated =
        (forced & ops::kTokenRepetition) && tokens[last] == tokens[last - 1];
    bool earlier = (forced & ops::kTextRepetition) && positions[last] < end - 3;
    if (!repeated && !earlier) {
      break;
    }
    ++count;
  }
  return count;
}

Session::Session(std::shared_ptr<const Model> model, SessionOptions options)
    : model_(std::move(model)), options_(std::move(options)) {}

bool Session::wants_segment() const {
  if (!options_.together) {
    return utterances_.empty();
  }
  return speaking() < kTogether;
}

int Session::speaking() const {
  return std::ranges::count_if(
      utterances_, [](const Utterance& each) { return bool(each.speech); });
}

void Session::add(Segment segment) {
  Stopwatch watch;
  std::shared_ptr<SpeechTokens> speech;
  if (segment.manner) {
    const auto& manner = *segment.manner;
    SpeechRequest request{
        segment.text_tokens,
        manner.voice,
        manner.options,
        options_.analyser,
        uint32_t(added_),
        options_.min_tokens,
        manner.draft,
        std::nullopt,
        manner.proposal_length};
    speech = std::make_shared<SpeechTokens>(model_->t3, std::move(request));
  }
  double speed = segment.manner ? segment.manner->speed : 1;
  WordTimes words(segment.words, segment.word_of, speed);
  int text_tokens = segment.text_tokens.size();
  utterances_.push_back(
      {.number = added_++,
       .segment = std::move(segment),
       .speech = std::move(speech),
       .words = std::move(words),
       .tokens = {},
       .positions = {},
       .untold_text = text_tokens});
  stages_.t3 += watch.seconds();
}

std::optional<SpokenChunk> Session::step() {
  require(!done(), "the session has nothing left to say");
  auto& utterance = utterances_.front();
  auto chunk = advance(utterance);
  if (utterance.sounded && utterance.segment.silence == 0) {
    SpeculationCounts counts;
    if (utterance.speech) {
      counts = utterance.speech->speculation();
    }
    bool silent = utterance.speech && utterance.tokens.empty();
    ended_.push_back({utterance.number, silent, counts});
    sound_.reset();
    utterances_.pop_front();
  }
  return chunk;
}

std::vector<Session::Ended> Session::take_ended() {
  return std::exchange(ended_, {});
}

std::optional<SpokenChunk> Session::advance(Utterance& utterance) {
  if (!utterance.speech) {
    utterance.sounded = true;
  }
  if (utterance.sounded) {
    return utterance.segment.silence > 0 ? std::optional(silence(utterance))
                                         : std::nullopt;
  }
  if (!sound_) {
    const auto& manner = *utterance.segment.manner;
    utterance.offset = double(samples_) / kSampleRate;
    sound_.emplace(
        model_,
        SoundRequest{
            .voice = manner.flow_voice,
            .options = manner.options,
            .speed = manner.speed,
            .sentence = uint32_t(utterance.number),
            .cuts = std::nullopt});
  }
  if (!sound_->busy()) {
    speak(utterance);
    return std::nullopt;
  }
  double flow = sound_->flow_seconds(), vocoder = sound_->vocoder_seconds();
  auto samples = sound_->step();
  stages_.flow += sound_->flow_seconds() - flow;
  stages_.vocoder += sound_->vocoder_seconds() - vocoder;
  return samples ? std::optional(heard(utterance, std::move(*samples)))
                 : std::nullopt;
}

// Asks T3 for the next token, and begins the sound of what has become enough
// for a chunk.
void Session::speak(Utterance& utterance) {
  Stopwatch watch;
  std::vector<std::shared_ptr<SpeechTokens>> ahead;
  for (size_t i = 1; options_.together && i < utterances_.size(); ++i) {
    if (utterances_[i].speech) {
      ahead.push_back(utterances_[i].speech);
    }
  }
  auto token = utterance.speech->next(ahead);
  if (token && *token < kStartSpeech) {
    utterance.tokens.push_back(*token);
    check_finite(utterance);
    utterance.positions.push_back(utterance.speech->text_position());
    utterance.words.add_token(utterance.positions.back());
  }
  stages_.t3 += watch.seconds();
  double flow = sound_->flow_seconds();
  if (!token) {
    end_speech(utterance);
  } else if (sound_->ready(utterance.tokens.size())) {
    sound_->begin(utterance.tokens, false);
  }
  stages_.flow += sound_->flow_seconds() - flow;
}

void Session::end_speech(Utterance& utterance) {
  auto& tokens = utterance.tokens;
  int end = utterance.segment.text_tokens.size() + 2;
  int forced = utterance.speech->stop_forced();
  tokens.resize(
      tokens.size() - count_astray(tokens, utterance.positions, end, forced));
  utterance.spoken = true;
  if (tokens.empty()) {
    utterance.segment.silence = 0;
    utterance.sounded = true;
    return;
  }
  auto solved = tokens;
  const auto& closing = options_.closing_tokens;
  solved.insert(solved.end(), closing.begin(), closing.end());
  sound_->begin(std::move(solved), true);
}

// A chunk of these samples; the last one of a segment begins the silence.
SpokenChunk Session::heard(Utterance& utterance, std::vector<float> samples) {
  bool last = utterance.spoken;
  follow(utterance, last);
  double until = double(sound_->sent()) / kSampleRate;
  const auto& tokens = utterance.tokens;
  int solved = std::min<int>(sound_->solved(), tokens.size());
  SpokenChunk chunk;
  chunk.segment = utterance.number;
  chunk.samples = std::move(samples);
  chunk.tokens.assign(tokens.begin() + utterance.told, tokens.begin() + solved);
  chunk.words =
      last ? utterance.words.take_rest(until) : utterance.words.take(until);
  chunk.offset = utterance.offset;
  chunk.text_tokens = std::exchange(utterance.untold_text, 0);
  utterance.told = solved;
  if (last) {
    auto& silence = utterance.segment.silence;
    int64_t added = std::min(silence, kLongestSilence);
    chunk.samples.resize(chunk.samples.size() + added, 0.0f);
    silence -= added;
    utterance.sounded = true;
  }
  return finished(std::move(chunk));
}

SpokenChunk Session::silence(Utterance& utterance) {
  auto& left = utterance.segment.silence;
  int64_t count = std::min(left, kLongestSilence);
  left -= count;
  SpokenChunk chunk;
  chunk.segment = utterance.number;
  chunk.samples.resize(count, 0.0f);
  return finished(std::move(chunk));
}

SpokenChunk Session::finished(SpokenChunk chunk) {
  samples_ += chunk.samples.size();
  chunk.stages = stages_;
  chunk.spoken = samples_;
  return chunk;
}

// Tells the words where in the text the tokens are, where that is not known as
// they come. to_end: they are all tokens of the text.
void Session::follow(Utterance& utterance, bool to_end) {
  if (!options_.followed) {
    return;
  }
  Stopwatch watch;
  const auto& text = utterance.segment.text_tokens;
  auto weights = model_->t3->text_weights(
      text,
      queries_of(utterance.tokens),
      utterance.segment.manner->voice,
      *options_.followed);
  int count = utterance.tokens.size(), length = text.size();
  auto path =
      monotonic_path(mean_weights(weights, count, length), length, to_end);
  for (int& position : path) {
    ++position; // the start token comes first
  }
  utterance.words.set_positions(path);
  stages_.t3 += watch.seconds();
}

// The sampler chooses token 0 again and again where T3 computes NaN or
// infinity, so that only the second in a row has it computed once more.
void Session::check_finite(const Utterance& utterance) const {
  const auto& tokens = utterance.tokens;
  int zeros = 0;
  while (zeros < 3 && zeros < std::ssize(tokens) &&
         tokens[tokens.size() - 1 - zeros] == 0) {
    ++zeros;
  }
  if (zeros != 2) {
    return;
  }
  auto logits = model_->t3->logits(
      utterance.segment.text_tokens,
      queries_of(tokens),
      utterance.segment.manner->voice,
      0);
  if (!all_finite(host_floats(logits))) {
    throw NotFinite("T3 model");
  }
}

} // namespace nightingale
