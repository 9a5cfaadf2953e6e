#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nightingale/engine/model.h"
#include "nightingale/engine/sentence_sound.h"
#include "nightingale/engine/sound_aside.h"
#include "nightingale/engine/word_times.h"
#include "nightingale/models/t3/speech_tokens.h"

namespace nightingale {

// In which voice and with which options something is said.
struct Manner {
  KvCache voice; // T3::condition
  std::shared_ptr<const FlowVoice> flow_voice;
  SpeechOptions options; // resolved
  double speed = 1; // the option, with all its digits
  MakeDraft draft = nullptr;
  std::shared_ptr<ProposalLength> proposal_length = nullptr;
  std::string voice_digest = {}; // empty: what it says is not cached
};

// Text that is spoken as one utterance, and the silence after it.
struct Segment {
  std::shared_ptr<const Manner> manner; // none: only silence
  std::vector<int> text_tokens; // without start and stop
  int words = 0;
  std::vector<int> word_of; // for each text token, which word it is part of
  int64_t silence = 0; // samples
};

struct StageSeconds {
  double t3 = 0;
  double flow = 0;
  double vocoder = 0;
};

// A part of the speech as it comes.
struct SpokenChunk {
  int segment = 0; // to which it belongs
  std::vector<float> samples;
  std::vector<int> tokens; // new since the last chunk
  std::vector<WordTime> words; // that ended in it
  double offset = 0; // seconds at which its segment begins
  int text_tokens = 0; // of the segment that begins with it
  StageSeconds stages; // so far
  int64_t spoken = 0; // samples so far, its own included
};

struct SessionOptions {
  // Later segments are spoken while an earlier one is, in one pass of T3.
  bool together = false;
  bool analyser = false;
  int min_tokens = 0; // of a segment
  std::vector<int> closing_tokens; // that follow T3's in each segment
  // Heads whose attention gives the words' times where the analyser does not;
  // empty: those that the model's files name.
  std::optional<std::vector<AlignmentHead>> followed;
};

// Says a text, segment by segment, in the thread that asks for it. Before it is
// asked for, at most the tokens of the next chunk are computed, and only along
// with those of other sessions: dropping the object is all that cancelling
// takes. Sessions of one model may be used by different threads; one that fails
// disturbs no other.
class Session {
 public:
  Session(std::shared_ptr<const Model> model, SessionOptions options);

  // Whether there is work that needs a further segment, if one is left: in a
  // session that speaks several together, while passes have room for it.
  bool wants_segment() const;
  void add(Segment segment);

  // Whether all segments so far have been said.
  bool done() const {
    return parts_.empty();
  }

  // Segments that are being spoken.
  int speaking() const;

  // One pass of T3, one step of the flow or one chunk's sound; gives a chunk
  // where one is complete. Throws NotFinite, and an Error where an op failed.
  // On the CPU all that it began has been computed when it returns, but for a
  // sound that is made in a lane: until that is done, a step is a pass for
  // others, or a short wait.
  std::optional<SpokenChunk> step();

  // The segments that ended since the last call: without a sound where the
  // model said nothing.
  struct Ended {
    int segment;
    bool silent;
    SpeculationCounts speculation;
  };
  std::vector<Ended> take_ended();

 private:
  struct Part {
    int number;
    Segment segment;
    std::shared_ptr<Utterance> speech; // none: from the cache, or only silence
    WordTimes words;
    std::vector<int> tokens;
    std::vector<int> positions; // of them in the text
    std::vector<int> draws; // of them; a token that is no sound has one too
    int drawn = 0;
    bool spoken = false; // to its end
    bool sounded = false; // to its end
    int told = 0; // tokens that chunks have brought
    int untold_text = 0; // text tokens, until its first chunk
    double offset = 0;
    std::string key = {}; // in the cache of sentences; empty: it is not kept
    SentenceChunks made = {}; // of one that is to be kept
    std::shared_ptr<const SentenceChunks> kept = nullptr; // from the cache
    size_t played = 0; // chunks of them
  };

  std::optional<SpokenChunk> advance(Part& part);
  void begin_sound(const Part& part);
  void end_sound();
  StageSeconds stages() const;
  void speak(Part& part);
  bool has_token(Part& part);
  bool take_token(Part& part);
  Clock::time_point due() const;
  void set_due();
  void solve(const Part& part, std::vector<int> tokens, bool last);
  void end_speech(Part& part);
  SpokenChunk heard(Part& part, std::vector<float> samples);
  SpokenChunk play(Part& part);
  SpokenChunk told(Part& part, SentenceChunk sound, bool last);
  std::string cache_key(const Segment& segment) const;
  std::shared_ptr<Utterance> utterance(const Segment& segment);
  SpokenChunk silence(Part& part);
  void follow(Part& part, bool to_end);
  SpokenChunk finished(SpokenChunk chunk);

  std::shared_ptr<const Model> model_;
  SessionOptions options_;
  int number_; // among those of the model
  size_t wanted_tokens_; // that are queued before one is read
  int added_ = 0; // segments
  std::deque<Part> parts_; // the first is heard
  std::shared_ptr<SentenceSound> sound_; // of the first
  std::unique_ptr<SoundAside> aside_; // its chunk that was begun, if in a lane
  std::vector<Ended> ended_;
  StageSeconds stages_; // but for those of sound_
  int64_t samples_ = 0;
  bool has_room_ = true; // the scheduler, for a further segment
  std::optional<Clock::time_point> begun_; // by the first step
};

// How many of the last tokens the analyser's forced stop came too late for: at
// most the look-ahead, which no chunk has brought yet. positions: of the tokens
// in the text; end: of the text, with start and stop; forced: a sum of
// ops::AlignmentFault.
int count_astray(
    const std::vector<int>& tokens,
    const std::vector<int>& positions,
    int end,
    int forced);

} // namespace nightingale
