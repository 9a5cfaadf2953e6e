#include "nightingale/engine/sentence_sound.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "nightingale/engine/fades.h"
#include "nightingale/engine/host_floats.h"
#include "nightingale/stopwatch.h"

namespace nightingale {

namespace {

constexpr int kCrossFade = 480; // samples over which a chunk becomes the next
constexpr int kUndivided = 25; // tokens that are missing, as far as is known
constexpr int kShortestCut = 8; // tokens from which the last one is dropped

std::vector<float> from(const std::vector<float>& samples, int64_t begin) {
  auto count = std::clamp<int64_t>(begin, 0, samples.size());
  return {samples.begin() + count, samples.end()};
}

ChunkEnds ends_of(const SoundRequest& request) {
  return request.cuts ? ChunkEnds(*request.cuts) : ChunkEnds(request.options);
}

} // namespace

SentenceSound::SentenceSound(
    std::shared_ptr<const Model> model,
    SoundRequest request)
    : model_(std::move(model)),
      request_(std::move(request)),
      ends_(ends_of(request_)),
      prompt_excess_(
          request_.voice->prompt_frames() -
          kFramesPerToken * int(request_.voice->prompt_tokens.size())),
      vocoder_(
          model_->vocoder->begin({request_.options.seed, request_.sentence})) {}

bool SentenceSound::ready(int tokens) const {
  return ends_.next() && tokens >= *ends_.next() + model_->lookahead;
}

int SentenceSound::missing(int tokens) const {
  auto ends = ends_;
  if (busy()) {
    ends.advance();
  }
  return ends.next() ? std::max(0, *ends.next() + model_->lookahead - tokens)
                     : kUndivided;
}

void SentenceSound::begin(std::vector<int> tokens, bool last) {
  Stopwatch watch;
  int count = tokens.size();
  int end = last ? count : ends_.next().value();
  int begin = 0; // the first token that the solution sees
  if (request_.options.context) {
    begin = std::max(0, settled_ / kFramesPerToken - *request_.options.context);
  }
  int seen = last ? count : std::min(count, end + model_->lookahead);
  MelRequest solved{
      {tokens.begin() + begin, tokens.begin() + seen},
      *request_.voice,
      request_.options.steps,
      last,
      request_.options.seed,
      request_.sentence,
      kFramesPerToken * begin,
      model_->flow_temperature};
  int first_frame = solved.first_frame;
  std::optional<MelRequest> request;
  if (model_->flow->new_frames(solved) > 0) {
    request = std::move(solved);
  }
  solving_ =
      Solving{count, end, first_frame, last, std::move(request), nullptr};
  flow_seconds_ += watch.seconds();
}

void SentenceSound::solve(std::shared_ptr<const Flow> flow) {
  if (auto request = std::exchange(solving_->request, std::nullopt)) {
    auto state = flow->begin(*request);
    solving_->solution =
        std::make_shared<Solution>(Solution{std::move(flow), std::move(state)});
  }
}

std::shared_ptr<Solution> SentenceSound::solution() {
  Stopwatch watch;
  solve(model_->flow);
  flow_seconds_ += watch.seconds();
  return solving_->solution;
}

std::optional<std::vector<float>> SentenceSound::step() {
  Stopwatch watch;
  solve(model_->flow);
  if (auto solution = solving_->solution) {
    bool under_way = !solution->state.finished();
    if (under_way && !solution->failure) {
      model_->scheduler->advance(solution);
    }
    if (solution->failure) {
      std::rethrow_exception(solution->failure);
    }
    if (under_way) {
      flow_seconds_ += watch.seconds();
      return std::nullopt;
    }
  }
  flow_seconds_ += watch.seconds();
  return chunk(*model_->vocoder);
}

std::vector<float> SentenceSound::make(
    const mx::Stream& s,
    const ops::LaneWork& work) {
  Stopwatch watch;
  auto flow = std::make_shared<const Flow>(model_->flow->on(s));
  solve(flow);
  if (const auto& solution = solving_->solution) {
    while (!solution->state.finished() && !work.dropped()) {
      flow->step(solution->state);
    }
  }
  flow_seconds_ += watch.seconds();
  return work.dropped() ? std::vector<float>() : chunk(model_->vocoder->on(s));
}

// The samples of the chunk whose solution is finished.
std::vector<float> SentenceSound::chunk(const Vocoder& vocoder) {
  Stopwatch watch;
  settle(solved_frames());
  flow_seconds_ += watch.seconds();

  Stopwatch vocoder_watch;
  bool last = solving_->last;
  auto samples = sound(vocoder, last);
  if (last) {
    if (request_.drop_last_token && solving_->tokens >= kShortestCut) {
      int count = samples.size();
      int dropped = std::lrint(kTokenSamples / request_.speed);
      samples.resize(std::max(0, count - dropped));
    }
    fade_out(samples);
  }
  if (sent_ < 2 * kFrameSamples) {
    fade_in(samples, sent_);
  }
  sent_ += samples.size();
  ends_.advance();
  solving_.reset();
  vocoder_seconds_ += vocoder_watch.seconds();
  return samples;
}

// Those of the solution, which ends here.
std::vector<float> SentenceSound::solved_frames() {
  auto solution = std::exchange(solving_->solution, nullptr);
  if (!solution) {
    return {};
  }
  auto mel = solution->flow->finish(std::move(solution->state));
  auto frames = host_floats(mel);
  if (!all_finite(frames)) {
    throw NotFinite("flow");
  }
  return frames;
}

// Takes the frames of the solution that is under way, blended into those there
// are.
void SentenceSound::settle(std::vector<float> frames) {
  auto skipped = size_t(settled_ - solving_->first_frame) * kMels;
  frames.erase(
      frames.begin(), frames.begin() + std::min(skipped, frames.size()));
  mel_ = blend(mel_, std::move(frames), settled_ - first_);
  solved_ = solving_->end;
  int kept_back = solving_->last ? 0 : request_.options.overlap;
  settled_ =
      std::max(0, kFramesPerToken * (solved_ - kept_back) - prompt_excess_);
}

// The samples of all settled frames that the listener does not have.
std::vector<float> SentenceSound::sound(const Vocoder& vocoder, bool last) {
  double speed = request_.speed;
  int known = first_ + int(mel_.size()) / kMels;
  int64_t begin = sounded_;
  if (last) {
    auto samples = feed(vocoder, stretched_length(known, speed), true);
    return crossed(from(samples, sent_ - begin));
  }
  auto samples = feed(vocoder, determined_length(settled_, speed), false);
  int frames = determined_length(known, speed);
  auto unsettled = stretch(mel_, speed, vocoded_, frames, first_);
  auto copy = vocoder_;
  auto ahead = vocode(vocoder, copy, unsettled, true);
  samples.insert(samples.end(), ahead.begin(), ahead.end());
  samples = crossed(from(samples, sent_ - begin));
  int64_t length = samples.size();
  int64_t count = std::clamp<int64_t>(
      int64_t(kFrameSamples) * vocoded_ - kCrossFade - sent_, 0, length);
  int64_t end = std::min(count + kCrossFade, length);
  held_.assign(samples.begin() + count, samples.begin() + end);
  samples.resize(count);
  return samples;
}

// Takes the vocoder to this many frames; the samples that are ready then.
std::vector<float>
SentenceSound::feed(const Vocoder& vocoder, int frames, bool last) {
  auto fresh = stretch(mel_, request_.speed, vocoded_, frames, first_);
  auto samples = vocode(vocoder, vocoder_, fresh, last);
  vocoded_ = frames;
  sounded_ += samples.size();
  return samples;
}

std::vector<float> SentenceSound::vocode(
    const Vocoder& vocoder,
    VocoderState& state,
    const std::vector<float>& frames,
    bool last) const {
  int count = frames.size() / kMels;
  mx::array mel(frames.data(), {count, kMels}, mx::float32);
  auto samples = host_floats(vocoder.feed(state, mel, last));
  if (!all_finite(samples)) {
    throw NotFinite("vocoder");
  }
  return samples;
}

// Samples that follow those sent, faded in over what the last chunk had to say.
std::vector<float> SentenceSound::crossed(std::vector<float> samples) const {
  auto count = std::min(held_.size(), samples.size());
  return cross_fade({held_.begin(), held_.begin() + count}, std::move(samples));
}

void SentenceSound::forget() {
  int needed = std::min(settled_, int((vocoded_ + 0.5) * request_.speed - 0.5));
  int known = mel_.size() / kMels;
  int dropped = std::clamp(needed - first_, 0, known);
  mel_.erase(mel_.begin(), mel_.begin() + size_t(dropped) * kMels);
  first_ = std::max(first_, needed);
}

} // namespace nightingale
