#include "nightingale/engine/session.h"

#include <algorithm>
#include <utility>

#include "mlx/stream.h"
#include "nightingale/engine/host_floats.h"
#include "nightingale/engine/text_path.h"
#include "nightingale/ops/alignment.h"
#include "nightingale/ops/machine.h"
#include "nightingale/stopwatch.h"

namespace nightingale {

namespace {

constexpr int64_t kLongestSilence = kSampleRate; // samples in a chunk
constexpr std::chrono::milliseconds kLongestWait{5}; // for a lane

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
      number_(model_->scheduler->new_session()),
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
  return parts_.empty() || has_room_;
}

int Session::speaking() const {
  return std::ranges::count_if(
      parts_, [](const Part& each) { return bool(each.speech); });
}

void Session::add(Segment segment) {
  std::lock_guard turn(model_->scheduler->turn());
  Stopwatch watch;
  auto key = cache_key(segment);
  std::shared_ptr<const SentenceChunks> kept;
  if (!key.empty()) {
    kept = model_->sentences->find(key);
  }
  std::shared_ptr<Utterance> speech;
  if (segment.manner && !kept) {
    speech = utterance(segment);
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
       .untold_text = text_tokens,
       .key = std::move(key),
       .kept = std::move(kept)});
  set_due();
  has_room_ = model_->scheduler->has_room();
  stages_.t3 += watch.seconds();
}

// That says a segment, and is known to the scheduler.
std::shared_ptr<Utterance> Session::utterance(const Segment& segment) {
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
  auto made = std::make_shared<Utterance>(model_->t3, std::move(request));
  made->session = number_;
  model_->scheduler->join(made);
  return made;
}

// All that the next segment's chunks depend on beside the model; empty where
// they are not cached. Which sentence of the text it is, is part of its draws.
std::string Session::cache_key(const Segment& segment) const {
  if (!model_->sentences || !segment.manner ||
      segment.manner->voice_digest.empty()) {
    return {};
  }
  const auto& manner = *segment.manner;
  CacheKey key;
  key.add(manner.voice_digest);
  SpeechOptions::each([&](const char*, auto member, const OptionRange&) {
    key.add(manner.options.*member);
  });
  key.add(manner.speed);
  key.add(segment.text_tokens);
  key.add(segment.words);
  key.add(segment.word_of);
  key.add(added_);
  key.add(options_.analyser);
  key.add(options_.min_tokens);
  key.add(options_.closing_tokens);
  key.add(options_.followed.has_value());
  return key.take();
}

std::optional<SpokenChunk> Session::step() {
  require(!done(), "the session has nothing left to say");
  auto& scheduler = *model_->scheduler;
  std::unique_lock turn(scheduler.turn());
  if (aside_ && !aside_->done() && !scheduler.advance_others()) {
    turn.unlock();
    aside_->wait(kLongestWait);
    return std::nullopt;
  }
  auto failed_before = scheduler.failed_ops();
  if (!begun_) {
    begun_ = Clock::now();
    set_due();
  }
  auto& part = parts_.front();
  auto chunk = advance(part);
  if (scheduler.failed_ops() != failed_before) {
    throw Error(ops::last_failure());
  }
  if (chunk) {
    set_due();
  }
  if (part.sounded && part.segment.silence == 0) {
    SpeculationCounts counts;
    if (part.speech) {
      counts = part.speech->tokens.speculation();
    }
    bool silent = part.speech && part.tokens.empty();
    ended_.push_back({part.number, silent, counts});
    end_sound();
    parts_.pop_front();
  }
  has_room_ = scheduler.has_room();
  return chunk;
}

// When a listener who began with the first step will have heard all that was
// made.
Clock::time_point Session::due() const {
  auto heard = std::chrono::duration<double>(double(samples_) / kSampleRate);
  return begun_.value_or(Clock::now()) +
      std::chrono::duration_cast<Clock::duration>(heard);
}

void Session::set_due() {
  for (auto& part : parts_) {
    if (part.speech) {
      part.speech->due = due();
    }
  }
}

std::vector<Session::Ended> Session::take_ended() {
  return std::exchange(ended_, {});
}

std::optional<SpokenChunk> Session::advance(Part& part) {
  if (part.kept && !part.sounded) {
    return play(part);
  }
  if (!part.speech) {
    part.sounded = true;
  }
  if (part.sounded) {
    return part.segment.silence > 0 ? std::optional(silence(part))
                                    : std::nullopt;
  }
  if (!sound_) {
    part.offset = double(samples_) / kSampleRate;
    begin_sound(part);
  }
  if (aside_) {
    return aside_->done()
        ? std::optional(heard(part, std::exchange(aside_, nullptr)->take()))
        : std::nullopt;
  }
  if (!sound_->busy()) {
    speak(part);
    return std::nullopt;
  }
  auto samples = sound_->step();
  return samples ? std::optional(heard(part, std::move(*samples)))
                 : std::nullopt;
}

void Session::begin_sound(const Part& part) {
  const auto& manner = *part.segment.manner;
  sound_ = std::make_shared<SentenceSound>(
      model_,
      SoundRequest{
          .voice = manner.flow_voice,
          .options = manner.options,
          .speed = manner.speed,
          .sentence = uint32_t(part.number),
          .cuts = std::nullopt});
}

void Session::end_sound() {
  if (sound_) {
    stages_ = stages();
    sound_.reset();
  }
}

// So far, while no chunk is made in a lane.
StageSeconds Session::stages() const {
  auto stages = stages_;
  if (sound_) {
    stages.flow += sound_->flow_seconds();
    stages.vocoder += sound_->vocoder_seconds();
  }
  return stages;
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

// Takes a token that is known; false at the end.
bool Session::take_token(Part& part) {
  auto token = part.speech->tokens.take_queued();
  int draw = part.drawn++;
  if (token && *token < kStartSpeech) {
    part.tokens.push_back(*token);
    part.draws.push_back(draw);
    part.positions.push_back(part.speech->tokens.text_position());
    part.words.add_token(part.positions.back());
  }
  return token.has_value();
}

// Has T3 compute the next token, takes all that are known, and begins the sound
// of what has become enough for a chunk.
void Session::speak(Part& part) {
  Stopwatch watch;
  const auto& speech = part.speech->tokens;
  bool known = has_token(part), more = true, ready = false;
  if (!known && !ops::queues_ahead(model_->t3->stream())) {
    // A part of the prompt: no failure of it may come in another's step.
    mx::synchronize(model_->t3->stream());
  }
  while (known && more && !ready) {
    more = take_token(part);
    ready = sound_->ready(part.tokens.size());
    known = speech.queued() >= wanted_tokens_;
  }
  stages_.t3 += watch.seconds();
  if (!more) {
    end_speech(part);
  } else if (ready) {
    solve(part, part.tokens, false);
  } else {
    part.speech->wanted = sound_->missing(part.tokens.size());
  }
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
  solve(part, std::move(solved), true);
}

// Begins the next chunk, in a lane where others have something to compute
// meanwhile. Elsewhere they may compute steps of its solution.
void Session::solve(const Part& part, std::vector<int> tokens, bool last) {
  sound_->begin(std::move(tokens), last);
  auto& scheduler = *model_->scheduler;
  part.speech->wanted = last ? 0 : sound_->missing(part.tokens.size());
  if (model_->uses_lanes() && scheduler.keeps_lanes_busy(number_, due())) {
    aside_ = SoundAside::begin(sound_, due());
  }
  if (aside_) {
    scheduler.count_chunk_aside();
  } else if (auto solution = sound_->solution()) {
    solution->due = due();
    scheduler.join(solution);
  }
}

// A chunk of these samples.
SpokenChunk Session::heard(Part& part, std::vector<float> samples) {
  bool last = part.spoken;
  follow(part, last);
  double until = double(sound_->sent()) / kSampleRate;
  const auto& tokens = part.tokens;
  int solved = std::min<int>(sound_->solved(), tokens.size());
  SentenceChunk sound{
      std::move(samples),
      {tokens.begin() + part.told, tokens.begin() + solved},
      last ? part.words.take_rest(until) : part.words.take(until)};
  part.told = solved;
  if (!part.key.empty()) {
    part.made.push_back(sound);
    if (last) {
      model_->sentences->keep(part.key, std::move(part.made));
    }
  }
  return told(part, std::move(sound), last);
}

// The next chunk of a segment that is in the cache.
SpokenChunk Session::play(Part& part) {
  if (part.played == 0) {
    part.offset = double(samples_) / kSampleRate;
  }
  auto sound = (*part.kept)[part.played++];
  return told(part, std::move(sound), part.played == part.kept->size());
}

// A chunk with this sound; the last one of a segment begins the silence.
SpokenChunk Session::told(Part& part, SentenceChunk sound, bool last) {
  SpokenChunk chunk;
  chunk.segment = part.number;
  chunk.samples = std::move(sound.samples);
  chunk.tokens = std::move(sound.tokens);
  chunk.words = std::move(sound.words);
  chunk.offset = part.offset;
  chunk.text_tokens = std::exchange(part.untold_text, 0);
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
  chunk.stages = stages();
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

} // namespace nightingale
