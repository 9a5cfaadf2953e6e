#include "nightingale/engine/session.h"

#include <algorithm>
#include <utility>

#include "nightingale/engine/host_floats.h"
#include "nightingale/engine/text_path.h"
#include "nightingale/ops/alignment.h"
#include "nightingale/stopwatch.h"

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

// [heads, drawn, framed text] to the mean over the heads of the weights on the
// text itself, of each of `draws`.
std::vector<float> mean_weights(
    const mx::array& weights,
    const std::vector<int>& draws,
    int text) {
  int heads = weights.shape(0), drawn = weights.shape(1);
  int framed = weights.shape(2), begin = (framed - text) / 2;
  auto values = host_floats(weights);
  std::vector<float> mean(draws.size() * text, 0.0f);
  for (int head = 0; head < heads; ++head) {
    for (size_t token = 0; token < draws.size(); ++token) {
      const float* row = values.data() +
          (size_t(head) * drawn + draws[token]) * framed + begin;
      for (int i = 0; i < text; ++i) {
        mean[token * text + i] += row[i];
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
    : model_(std::move(model)),
      options_(std::move(options)),
      wanted_tokens_(ops::queues_ahead(model_->t3->stream()) ? 2 : 1) {
  auto& followed = options_.followed;
  if (followed && followed->empty()) {
    followed = model_->t3->config().settings.alignment_heads;
    require(!followed->empty(), "this model names no alignment heads");
  }
}

bool Session::wants_segment() const {
  if (!options_.together) {
    return parts_.empty();
  }
  return speaking() < kTogether;
}

int Session::speaking() const {
  return std::ranges::count_if(
      parts_, [](const Part& each) { return bool(each.speech); });
}

void Session::add(Segment segment) {
  std::lock_guard turn(model_->scheduler->turn());
  Stopwatch watch;
  std::shared_ptr<Utterance> speech;
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
        manner.proposal_length,
        options_.followed.value_or(std::vector<AlignmentHead>{})};
    speech = std::make_shared<Utterance>(model_->t3, std::move(request));
    model_->scheduler->join(speech);
  }
  double speed = segment.manner ? segment.manner->speed : 1;
  WordTimes words(segment.words, segment.word_of, speed);
  int text_tokens = segment.text_tokens.size();
  parts_.push_back(
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
  std::lock_guard turn(model_->scheduler->turn());
  auto& part = parts_.front();
  auto chunk = advance(part);
  if (part.sounded && part.segment.silence == 0) {
    SpeculationCounts counts;
    if (part.speech) {
      counts = part.speech->tokens.speculation();
    }
    bool silent = part.speech && part.tokens.empty();
    ended_.push_back({part.number, silent, counts});
    sound_.reset();
    parts_.pop_front();
  }
  return chunk;
}

std::vector<Session::Ended> Session::take_ended() {
  return std::exchange(ended_, {});
}

std::optional<SpokenChunk> Session::advance(Part& part) {
  if (!part.speech) {
    part.sounded = true;
  }
  if (part.sounded) {
    return part.segment.silence > 0 ? std::optional(silence(part))
                                    : std::nullopt;
  }
  if (!sound_) {
    const auto& manner = *part.segment.manner;
    part.offset = double(samples_) / kSampleRate;
    sound_.emplace(
        model_,
        SoundRequest{
            .voice = manner.flow_voice,
            .options = manner.options,
            .speed = manner.speed,
            .sentence = uint32_t(part.number),
            .cuts = std::nullopt});
  }
  if (!sound_->busy()) {
    speak(part);
    return std::nullopt;
  }
  double flow = sound_->flow_seconds(), vocoder = sound_->vocoder_seconds();
  auto samples = sound_->step();
  stages_.flow += sound_->flow_seconds() - flow;
  stages_.vocoder += sound_->vocoder_seconds() - vocoder;
  return samples ? std::optional(heard(part, std::move(*samples)))
                 : std::nullopt;
}

// Whether the next token, or the end, is known after one pass of T3 at most.
bool Session::has_token(Part& part) {
  auto& speech = *part.speech;
  if (speech.tokens.queued() < wanted_tokens_ && !speech.tokens.has_ended()) {
    std::vector<std::shared_ptr<Utterance>> group;
    for (const auto& each : parts_) {
      if (each.speech && (options_.together || group.empty())) {
        group.push_back(each.speech);
      }
    }
    model_->scheduler->advance(group);
  }
  if (speech.failure) {
    std::rethrow_exception(speech.failure);
  }
  return speech.tokens.queued() >= wanted_tokens_ || speech.tokens.has_ended();
}

// Asks T3 for the next token, and begins the sound of what has become enough
// for a chunk.
void Session::speak(Part& part) {
  Stopwatch watch;
  if (!has_token(part)) { // a part of the prompt
    stages_.t3 += watch.seconds();
    return;
  }
  auto token = part.speech->tokens.take_queued();
  int draw = part.drawn++;
  if (token && *token < kStartSpeech) {
    part.tokens.push_back(*token);
    part.draws.push_back(draw);
    check_finite(part);
    part.positions.push_back(part.speech->tokens.text_position());
    part.words.add_token(part.positions.back());
  }
  stages_.t3 += watch.seconds();
  part.speech->waiting = token.has_value();
  double flow = sound_->flow_seconds();
  if (!token) {
    end_speech(part);
  } else if (sound_->ready(part.tokens.size())) {
    sound_->begin(part.tokens, false);
  }
  stages_.flow += sound_->flow_seconds() - flow;
}

void Session::end_speech(Part& part) {
  auto& tokens = part.tokens;
  int end = part.segment.text_tokens.size() + 2;
  int forced = part.speech->tokens.stop_forced();
  tokens.resize(
      tokens.size() - count_astray(tokens, part.positions, end, forced));
  part.spoken = true;
  if (tokens.empty()) {
    part.segment.silence = 0;
    part.sounded = true;
    return;
  }
  auto solved = tokens;
  const auto& closing = options_.closing_tokens;
  solved.insert(solved.end(), closing.begin(), closing.end());
  sound_->begin(std::move(solved), true);
}

// A chunk of these samples; the last one of a segment begins the silence.
SpokenChunk Session::heard(Part& part, std::vector<float> samples) {
  bool last = part.spoken;
  follow(part, last);
  double until = double(sound_->sent()) / kSampleRate;
  const auto& tokens = part.tokens;
  int solved = std::min<int>(sound_->solved(), tokens.size());
  SpokenChunk chunk;
  chunk.segment = part.number;
  chunk.samples = std::move(samples);
  chunk.tokens.assign(tokens.begin() + part.told, tokens.begin() + solved);
  chunk.words = last ? part.words.take_rest(until) : part.words.take(until);
  chunk.offset = part.offset;
  chunk.text_tokens = std::exchange(part.untold_text, 0);
  part.told = solved;
  if (last) {
    auto& silence = part.segment.silence;
    int64_t added = std::min(silence, kLongestSilence);
    chunk.samples.resize(chunk.samples.size() + added, 0.0f);
    silence -= added;
    part.sounded = true;
  }
  return finished(std::move(chunk));
}

SpokenChunk Session::silence(Part& part) {
  auto& left = part.segment.silence;
  int64_t count = std::min(left, kLongestSilence);
  left -= count;
  SpokenChunk chunk;
  chunk.segment = part.number;
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
void Session::follow(Part& part, bool to_end) {
  if (!options_.followed) {
    return;
  }
  Stopwatch watch;
  int length = part.segment.text_tokens.size();
  part.draws.resize(part.tokens.size());
  auto weights = part.speech->tokens.text_weights();
  auto path =
      monotonic_path(mean_weights(weights, part.draws, length), length, to_end);
  for (int& position : path) {
    ++position; // the start token comes first
  }
  part.words.set_positions(path);
  stages_.t3 += watch.seconds();
}

// The sampler chooses token 0 again and again where T3 computes NaN or
// infinity, so that only the second in a row has it computed once more.
void Session::check_finite(const Part& part) const {
  const auto& tokens = part.tokens;
  int zeros = 0;
  while (zeros < 3 && zeros < std::ssize(tokens) &&
         tokens[tokens.size() - 1 - zeros] == 0) {
    ++zeros;
  }
  if (zeros != 2) {
    return;
  }
  auto logits = model_->t3->logits(
      part.segment.text_tokens,
      queries_of(tokens),
      part.segment.manner->voice,
      0);
  if (!all_finite(host_floats(logits))) {
    throw NotFinite("T3 model");
  }
}

} // namespace nightingale
