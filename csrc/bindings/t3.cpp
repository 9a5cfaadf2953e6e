#include "t3.h"
#include "nightingale/io/dtype.h"
#include "nightingale/models/t3/text_positions.h"

using namespace nightingale;

namespace {

T3Voice make_voice(
    const Floats& speaker,
    const std::optional<Ints>& prompt,
    float emotion) {
  return {
      to_vector(speaker),
      prompt ? to_vector(*prompt) : std::vector<int>{},
      emotion};
}

Info describe(const T3& model) {
  const auto& config = model.config();
  const auto& traits = config.traits();
  Info info;
  info["backbone"] = traits.name;
  info["guidance"] = traits.guidance;
  info["emotion"] = traits.emotion;
  info["prompt_tokens"] = traits.prompt_tokens;
  info["top_k"] = traits.top_k;
  info["top_p"] = traits.top_p;
  info["min_p"] = traits.min_p;
  info["layers"] = config.layers;
  info["hidden"] = config.hidden;
  info["ffn"] = config.ffn;
  info["text_vocabulary"] = config.text_vocabulary;
  info["speech_vocabulary"] = config.speech_vocabulary;
  info["text_positions"] = config.text_positions;
  info["speech_positions"] = config.speech_positions;
  info["dtype"] = dtype_name(model.dtype());
  info["bits"] = model.bits() == 0 ? nb::none() : nb::cast(model.bits());
  const auto& kv = model.kv();
  info["kv_bits"] = kv.bits ? nb::cast(kv.bits) : nb::none();
  info["kv_budget"] = kv.budget > 0.0f ? nb::cast(kv.budget) : nb::none();
  info["device"] = device_name(model.stream());
  info["weight_bytes"] = model.weight_bytes();
  info["step_bytes"] = model.step_bytes();
  info["position_bytes"] = model.position_bytes();
  info["analyser"] = config.settings.analyser;
  info["alignment"] = !config.settings.alignment_heads.empty();
  info["repetition_penalty"] = config.settings.repetition_penalty;
  return info;
}

} // namespace

nb::typed<nb::dict, nb::str, int> speculation_info(
    const SpeculationCounts& counts) {
  nb::typed<nb::dict, nb::str, int> info;
  info["rounds"] = counts.rounds;
  info["proposed"] = counts.proposed;
  info["accepted"] = counts.accepted;
  return info;
}

void bind_t3(nb::module_& m) {
  m.def(
      "t3_bits",
      &t3_bits,
      nb::arg("name"),
      nb::arg("bits"),
      "The bits in which T3 keeps a tensor that is loaded with `bits`.");

  m.def(
      "t3_transposed",
      &t3_transposed,
      nb::arg("name"),
      "Whether the floats of a T3 matrix are [inputs, outputs] in a file.");

  nb::class_<KvCache>(m, "KvCache")
      .def_prop_ro("length", [](const KvCache& cache) { return cache.length; })
      .def_prop_ro("nbytes", &KvCache::nbytes);

  nb::class_<BoundDraft>(
      m, "Draft", "Proposes tokens in one voice: see T3.speak.")
      .def_static(
          "ngram",
          [](const std::optional<Ints>& prompt) {
            return BoundDraft{
                ngram_draft(prompt ? to_vector(*prompt) : std::vector<int>{})};
          },
          nb::arg("prompt_tokens").none())
      .def_static(
          "layers",
          [](std::shared_ptr<T3> model,
             const std::optional<std::vector<int>>& kept) {
            int layers = model->config().layers;
            return BoundDraft{
                layer_draft(model, kept ? *kept : draft_layers(layers))};
          },
          nb::arg("model"),
          nb::arg("kept") = nb::none())
      .def_static(
          "model",
          [](std::shared_ptr<T3> draft, const KvCache& voice) {
            return BoundDraft{model_draft(draft, voice)};
          },
          nb::arg("draft"),
          nb::arg("voice"));

  m.def(
      "check_draft",
      &check_draft,
      nb::arg("model"),
      nb::arg("draft"),
      "Raises an Error where one T3 cannot propose tokens for the other.");

  nb::class_<T3>(m, "T3")
      .def_static(
          "load",
          [](std::shared_ptr<TensorFile> file,
             nb::handle given,
             const std::optional<std::string>& settings_of) {
            auto options = options_from<LoadOptions>(given);
            auto type = dtype_from(options.dtype);
            return load_model([&](auto* unknown) {
              auto s = model_stream(options);
              return T3::load(
                  file,
                  type,
                  options.bits,
                  s,
                  unknown,
                  settings_of,
                  options.preset);
            });
          },
          nb::arg("file"),
          nb::arg("options"),
          nb::arg("settings_of") = nb::none(),
          "The model and the names of tensors it does not know.")
      .def("describe", &describe)
      .def(
          "keep_cache",
          [](T3& model, int bits, float budget) {
            model.keep_cache({.bits = bits, .budget = budget});
          },
          nb::arg("bits"),
          nb::arg("budget"),
          "How KV caches are kept from now on; 0: as floats, and whole.")
      .def(
          "conditioning",
          [](const T3& model,
             const Floats& speaker,
             const std::optional<Ints>& prompt,
             float emotion) {
            return to_numpy(
                model.conditioning(make_voice(speaker, prompt, emotion)));
          },
          nb::arg("speaker"),
          nb::arg("prompt_tokens").none(),
          nb::arg("emotion"))
      .def(
          "condition",
          [](const T3& model,
             const Floats& speaker,
             const std::optional<Ints>& prompt,
             float emotion) {
            auto voice = make_voice(speaker, prompt, emotion);
            return without_gil([&] { return model.condition(voice); });
          },
          nb::arg("speaker"),
          nb::arg("prompt_tokens").none(),
          nb::arg("emotion"),
          "The cache that every text in this voice begins with.")
      .def(
          "logits",
          [](const T3& model,
             const Ints& text_tokens,
             const Ints& speech_tokens,
             const KvCache& voice,
             int chunk) {
            auto text = to_vector(text_tokens);
            auto speech = to_vector(speech_tokens);
            return to_numpy(without_gil(
                [&] { return model.logits(text, speech, voice, chunk); }));
          },
          nb::arg("text_tokens"),
          nb::arg("speech_tokens"),
          nb::arg("voice"),
          nb::arg("chunk") = 0,
          "Teacher-forced logits: [rows, speech tokens, vocabulary].")
      .def(
          "text_positions",
          [](const T3& model,
             const Ints& text_tokens,
             const Ints& speech_tokens,
             const KvCache& voice) {
            auto text = to_vector(text_tokens);
            auto speech = to_vector(speech_tokens);
            return without_gil(
                [&] { return text_positions(model, text, speech, voice); });
          },
          nb::arg("text_tokens"),
          nb::arg("speech_tokens"),
          nb::arg("voice"),
          "Where in the text each of these tokens would be spoken.")
      .def(
          "text_weights",
          [](const T3& model,
             const Ints& text_tokens,
             const Ints& speech_tokens,
             const KvCache& voice,
             const std::vector<std::pair<int, int>>& heads) {
            auto text = to_vector(text_tokens);
            auto speech = to_vector(speech_tokens);
            auto asked = heads_from(heads);
            return to_numpy(without_gil([&] {
              return model.text_weights(text, speech, voice, asked);
            }));
          },
          nb::arg("text_tokens"),
          nb::arg("speech_tokens"),
          nb::arg("voice"),
          nb::arg("heads"),
          "What each of these heads, in the order of their layers, gives to "
          "the "
          "text while each token is read: [heads, queries, framed text].")
      .def(
          "speak",
          [](std::shared_ptr<T3> model,
             const Ints& text_tokens,
             const KvCache& voice,
             nb::handle options,
             bool analyser,
             uint32_t sentence,
             int min_tokens,
             const std::optional<BoundDraft>& draft,
             std::optional<int> proposals,
             const std::vector<std::pair<int, int>>& watched_heads) {
            SpeechRequest request{
                to_vector(text_tokens),
                voice,
                options_from<SpeechOptions>(options),
                analyser,
                sentence,
                min_tokens,
                draft ? draft->make : nullptr,
                proposals,
                draft ? draft->length : nullptr,
                heads_from(watched_heads)};
            return without_gil([&] {
              return std::make_shared<SpeechTokens>(model, std::move(request));
            });
          },
          nb::arg("text_tokens"),
          nb::arg("voice"),
          nb::arg("options"),
          nb::kw_only(),
          nb::arg("analyser"),
          nb::arg("sentence") = 0,
          nb::arg("min_tokens") = 0,
          nb::arg("draft") = nb::none(),
          nb::arg("proposals") = nb::none(),
          nb::arg("watched_heads") = nb::list(),
          "Begins to speak a text; options: a resolved SpeechOptions.");

  nb::class_<SpeechTokens>(m, "SpeechTokens")
      .def(
          "next",
          [](SpeechTokens& speech,
             const std::vector<std::shared_ptr<SpeechTokens>>& ahead) {
            return without_gil([&] { return speech.next(ahead); });
          },
          nb::arg("ahead") = nb::list(),
          "The next token; where it is computed, so are those of `ahead`.")
      .def(
          "text_weights",
          [](SpeechTokens& speech) {
            return to_numpy(without_gil([&] { return speech.text_weights(); }));
          },
          "What the watched heads, in the order of their layers, gave to the "
          "text when each token so far was chosen: [heads, tokens, framed "
          "text].")
      .def_prop_ro(
          "cache_bytes",
          [](const SpeechTokens& speech) {
            return speech.cache().held_bytes();
          },
          "Bytes of the positions that the KV cache holds.")
      .def_prop_ro("text_position", &SpeechTokens::text_position)
      .def_prop_ro("stop_forced", &SpeechTokens::stop_forced)
      .def_prop_ro("speculation", [](const SpeechTokens& speech) {
        return speculation_info(speech.speculation());
      });
}
