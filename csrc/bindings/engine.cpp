#include "bindings.h"
#include "nightingale/engine/fades.h"
#include "nightingale/engine/session.h"
#include "nightingale/engine/text_path.h"
#include "t3.h"

using namespace nightingale;

namespace {

// A NumPy array that owns the values.
template <typename T>
NumpyArray to_numpy(
    std::vector<T> values,
    const std::vector<size_t>& shape = {}) {
  auto* owner = new std::vector<T>(std::move(values));
  nb::capsule keep(
      owner, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  auto sizes = shape.empty() ? std::vector<size_t>{owner->size()} : shape;
  return nb::borrow<NumpyArray>(nb::cast(nb::ndarray<nb::numpy, T>(
      owner->data(), sizes.size(), sizes.data(), keep)));
}

double speed_of(nb::handle options) {
  return nb::cast<double>(options.attr("speed"));
}

nb::typed<nb::dict, nb::str, float> seconds_of(const StageSeconds& stages) {
  nb::typed<nb::dict, nb::str, float> seconds;
  seconds["t3"] = stages.t3;
  seconds["flow"] = stages.flow;
  seconds["vocoder"] = stages.vocoder;
  return seconds;
}

nb::typed<nb::dict, nb::str, uint64_t> cache_counts(const Model& model) {
  auto counts =
      model.sentences ? model.sentences->counts() : SentenceCache::Counts();
  nb::typed<nb::dict, nb::str, uint64_t> found;
  found["hits"] = counts.hits;
  found["misses"] = counts.misses;
  found["sentences"] = counts.sentences;
  found["bytes"] = counts.bytes;
  found["limit"] = counts.limit;
  return found;
}

using WordTuple = nb::typed<nb::tuple, int, float, float>;

nb::typed<nb::list, WordTuple> to_list(const std::vector<WordTime>& words) {
  nb::typed<nb::list, WordTuple> found;
  for (const auto& word : words) {
    found.append(nb::make_tuple(word.word, word.start, word.end));
  }
  return found;
}

void bind_model(nb::module_& m) {
  nb::exception<NotFinite>(m, "NotFiniteError", m.attr("Error"));

  nb::class_<FlowVoice>(m, "FlowVoice", "What a voice gives to the flow.")
      .def(
          "__init__",
          [](FlowVoice* voice,
             const Ints& prompt_tokens,
             const FloatRows& prompt_mel,
             const Floats& speaker) {
            new (voice) FlowVoice{
                to_vector(prompt_tokens),
                to_vector(prompt_mel),
                to_vector(speaker)};
          },
          nb::arg("prompt_tokens"),
          nb::arg("prompt_mel"),
          nb::arg("speaker"));

  nb::class_<Model>(m, "Model", "The networks of one checkpoint.")
      .def(
          "__init__",
          [](Model* model,
             std::shared_ptr<T3> t3,
             std::shared_ptr<Flow> flow,
             std::shared_ptr<Vocoder> vocoder,
             int lookahead,
             float temperature,
             size_t cache) {
            new (model) Model{t3, flow, vocoder, lookahead, temperature};
            if (cache > 0) {
              model->sentences = std::make_shared<SentenceCache>(cache);
            }
          },
          nb::arg("t3"),
          nb::arg("flow"),
          nb::arg("vocoder"),
          nb::kw_only(),
          nb::arg("lookahead"),
          nb::arg("temperature"),
          nb::arg("cache") = 0,
          "cache: bytes for sentences that were spoken; 0: none are kept.")
      .def_prop_ro(
          "t3_passes",
          [](const Model& model) { return model.scheduler->passes(); },
          "Passes of T3 for sessions so far.")
      .def_prop_ro(
          "t3_steps",
          [](const Model& model) { return model.scheduler->steps(); },
          "Tokens and parts of prompts that they were for.")
      .def_prop_ro(
          "cache",
          &cache_counts,
          "What the cache of sentences holds, and how often it had what was "
          "asked for.");
}

void bind_sound(nb::module_& m) {
  nb::class_<SentenceSound>(m, "SentenceSound", "The sound of one sentence.")
      .def(
          "__init__",
          [](SentenceSound* sound,
             std::shared_ptr<Model> model,
             std::shared_ptr<FlowVoice> voice,
             nb::handle options,
             const std::optional<std::vector<int>>& cuts,
             bool drop_last_token) {
            SoundRequest request{
                voice,
                options_from<SpeechOptions>(options),
                speed_of(options),
                0,
                cuts,
                drop_last_token};
            new (sound) SentenceSound(model, std::move(request));
          },
          nb::arg("model"),
          nb::arg("voice"),
          nb::arg("options"),
          nb::kw_only(),
          nb::arg("cuts").none() = nb::none(),
          nb::arg("drop_last_token") = true,
          "cuts: token counts at which a chunk ends; None: as the options "
          "say.")
      .def(
          "ready",
          &SentenceSound::ready,
          nb::arg("tokens"),
          "Whether a chunk can be made of so many tokens, with more to come.")
      .def(
          "begin",
          [](SentenceSound& sound, std::vector<int> tokens, bool last) {
            without_gil([&] {
              std::lock_guard turn(sound.turn());
              sound.begin(std::move(tokens), last);
              return true;
            });
          },
          nb::arg("tokens"),
          nb::arg("last"),
          "Begins the next chunk of the sentence's tokens so far.")
      .def_prop_ro("busy", &SentenceSound::busy)
      .def(
          "step",
          [](SentenceSound& sound) -> std::optional<NumpyArray> {
            auto samples = without_gil([&] {
              std::lock_guard turn(sound.turn());
              return sound.step();
            });
            return samples ? std::optional(to_numpy(std::move(*samples)))
                           : std::nullopt;
          },
          "One step of the flow; after the last one, the chunk's samples.")
      .def("forget", &SentenceSound::forget)
      .def_prop_ro("solved", &SentenceSound::solved)
      .def_prop_ro("sent", &SentenceSound::sent)
      .def_prop_ro("flow_seconds", &SentenceSound::flow_seconds)
      .def_prop_ro("vocoder_seconds", &SentenceSound::vocoder_seconds)
      .def_prop_ro("mel", [](const SentenceSound& sound) {
        size_t frames = sound.mel().size() / kMels;
        return to_numpy(sound.mel(), {frames, size_t(kMels)});
      });
}

void bind_fade(nb::module_& m) {
  m.def(
      "fade_in",
      [](const Floats& samples) {
        auto faded = to_vector(samples);
        fade_in(faded);
        return to_numpy(std::move(faded));
      },
      nb::arg("samples"),
      "The samples of a sentence without what spills over from the prompt.");
}

void bind_words(nb::module_& m) {
  nb::class_<WordTimes>(
      m, "WordTimes", "The times of words, by the places of speech tokens.")
      .def(
          nb::init<int, std::vector<int>, double>(),
          nb::arg("words"),
          nb::arg("word_of"),
          nb::arg("speed") = 1.0)
      .def("set_positions", &WordTimes::set_positions, nb::arg("positions"))
      .def(
          "take",
          [](WordTimes& times, double until) {
            return to_list(times.take(until));
          },
          nb::arg("until"),
          "Number, start and end of the words that have ended by then.")
      .def(
          "take_rest",
          [](WordTimes& times, double end) {
            return to_list(times.take_rest(end));
          },
          nb::arg("end"),
          "Those of the words left, when the sentence ends then.");

  m.def(
      "monotonic_path",
      [](const FloatRows& weights, bool to_end) {
        return monotonic_path(to_vector(weights), weights.shape(1), to_end);
      },
      nb::arg("weights"),
      nb::arg("to_end"),
      "The text position of each query, never going back, that has most of the "
      "attention.");
}

void bind_session(nb::module_& m) {
  nb::class_<Manner>(m, "Manner", "A voice and the options to speak with.")
      .def(
          "__init__",
          [](Manner* manner,
             const KvCache& voice,
             const std::optional<BoundDraft>& draft,
             std::shared_ptr<FlowVoice> flow_voice,
             nb::handle options,
             std::string voice_digest) {
            new (manner) Manner{
                voice,
                flow_voice,
                options_from<SpeechOptions>(options),
                speed_of(options),
                draft ? draft->make : nullptr,
                draft ? draft->length : nullptr,
                std::move(voice_digest)};
          },
          nb::arg("voice"),
          nb::arg("draft").none(),
          nb::arg("flow_voice"),
          nb::arg("options"),
          nb::arg("voice_digest") = "",
          "voice_digest: of all that the voice is; empty: nothing is cached.");

  nb::class_<SpokenChunk>(m, "SpokenChunk")
      .def_ro("segment", &SpokenChunk::segment)
      .def_ro("offset", &SpokenChunk::offset)
      .def_ro("text_tokens", &SpokenChunk::text_tokens)
      .def_ro(
          "spoken", &SpokenChunk::spoken, "Samples so far, its own included.")
      .def_prop_ro(
          "samples", [](SpokenChunk& chunk) { return to_numpy(chunk.samples); })
      .def_prop_ro(
          "tokens", [](SpokenChunk& chunk) { return to_numpy(chunk.tokens); })
      .def_prop_ro(
          "words",
          [](const SpokenChunk& chunk) { return to_list(chunk.words); },
          "Number, start and end of each, in seconds of the segment.")
      .def_prop_ro("seconds", [](const SpokenChunk& chunk) {
        return seconds_of(chunk.stages);
      });

  nb::class_<Session::Ended>(m, "EndedSegment")
      .def_ro("segment", &Session::Ended::segment)
      .def_ro("silent", &Session::Ended::silent)
      .def_prop_ro("speculation", [](const Session::Ended& ended) {
        return speculation_info(ended.speculation);
      });

  nb::class_<Session>(m, "Session", "Says a text, segment by segment.")
      .def(
          "__init__",
          [](Session* session,
             std::shared_ptr<Model> model,
             bool together,
             bool analyser,
             int min_tokens,
             std::vector<int> closing_tokens,
             const std::optional<std::vector<std::pair<int, int>>>& followed) {
            SessionOptions options{
                together,
                analyser,
                min_tokens,
                std::move(closing_tokens),
                std::nullopt};
            if (followed) {
              options.followed = heads_from(*followed);
            }
            new (session) Session(model, std::move(options));
          },
          nb::arg("model"),
          nb::kw_only(),
          nb::arg("together"),
          nb::arg("analyser"),
          nb::arg("min_tokens"),
          nb::arg("closing_tokens"),
          nb::arg("followed").none())
      .def_prop_ro("wants_segment", &Session::wants_segment)
      .def_prop_ro("done", &Session::done)
      .def_prop_ro("speaking", &Session::speaking, "Segments, now.")
      .def(
          "add",
          [](Session& session,
             std::shared_ptr<Manner> manner,
             const Ints& text_tokens,
             int words,
             std::vector<int> word_of,
             int64_t silence) {
            Segment segment{
                manner,
                to_vector(text_tokens),
                words,
                std::move(word_of),
                silence};
            without_gil([&] {
              session.add(std::move(segment));
              return true;
            });
          },
          nb::arg("manner"),
          nb::arg("text_tokens"),
          nb::arg("words"),
          nb::arg("word_of"),
          nb::arg("silence"),
          "A further segment, and the samples of silence after it.")
      .def(
          "add_silence",
          [](Session& session, int64_t samples) {
            session.add({nullptr, {}, 0, {}, samples});
          },
          nb::arg("samples"))
      .def(
          "step",
          [](Session& session) {
            CoreCall call; // the session looks for failed ops of its own
            return session.step();
          },
          "A pass of T3, a step of the flow or a chunk's sound; gives a chunk "
          "when one is complete.")
      .def("take_ended", &Session::take_ended);
}

} // namespace

void bind_engine(nb::module_& m) {
  bind_model(m);
  bind_sound(m);
  bind_fade(m);
  bind_words(m);
  bind_session(m);
}
