#include "bindings.h"
#include "mlx/transforms.h"
#include "nightingale/models/voice/voice_baker.h"

using namespace nightingale;

namespace {

template <typename T>
NumpyArray numpy_of(const std::vector<T>& values) {
  int size = values.size();
  return to_numpy(mx::array(values.begin(), {size}));
}

// By the names of a voice's fields.
nb::typed<nb::dict, nb::str, NumpyArray> describe(const BakedVoice& voice) {
  const auto& [t3, flow] = voice;
  nb::typed<nb::dict, nb::str, NumpyArray> fields;
  fields["speaker_emb"] = numpy_of(t3.speaker);
  fields["cond_prompt_speech_tokens"] = numpy_of(t3.prompt_tokens);
  fields["prompt_token"] = numpy_of(flow.prompt_tokens);
  fields["prompt_feat"] = to_numpy(
      mx::array(flow.prompt_mel.begin(), {flow.prompt_frames(), kMels}));
  fields["embedding"] = numpy_of(flow.speaker);
  return fields;
}

} // namespace

void bind_voice(nb::module_& m) {
  nb::class_<SpeechTokenizer>(m, "SpeechTokenizer")
      .def_static(
          "load",
          [](std::shared_ptr<TensorFile> s3gen) {
            // On the CPU wherever the other models run: a recording has the
            // same tokens on every machine but for rounding.
            return load_model([&](auto* unknown) {
              return SpeechTokenizer::load(
                  s3gen, model_stream(LoadOptions{}), unknown);
            });
          },
          nb::arg("s3gen"),
          "The model and the names of its tensors that it does not know.")
      .def_prop_ro("weight_bytes", &SpeechTokenizer::weight_bytes)
      .def(
          "log_mel",
          [](const SpeechTokenizer& tokenizer, const Floats& samples) {
            int size = samples.size();
            mx::array row(samples.data(), {size}, mx::float32);
            return to_numpy(without_gil([&] {
              auto mel = tokenizer.log_mel(row);
              mx::eval(mel);
              return mel;
            }));
          },
          nb::arg("samples"),
          "What it hears of samples at 16 kHz, [n / 160, 128], 100 frames a "
          "second.")
      .def(
          "tokens",
          [](const SpeechTokenizer& tokenizer,
             const FloatRows& log_mel,
             float loudest) {
            auto frames = to_array(log_mel);
            return numpy_of(without_gil(
                [&] { return tokenizer.tokens_of(frames, loudest); }));
          },
          nb::arg("log_mel"),
          nb::arg("loudest"),
          "The tokens of a part of a recording, 25 a second and 30 s at most. "
          "loudest: the greatest value in the log_mel of the whole.");

  nb::class_<VoiceBaker>(m, "VoiceBaker")
      .def_static(
          "load",
          [](std::shared_ptr<TensorFile> s3gen,
             std::shared_ptr<TensorFile> voice_encoder,
             std::shared_ptr<SpeechTokenizer> tokenizer) {
            // On the CPU wherever the other models run: a voice is baked once,
            // and is then the same on every machine but for rounding.
            return load_model([&](auto* unknown) {
              return VoiceBaker::load(
                  s3gen,
                  voice_encoder,
                  model_stream(LoadOptions{}),
                  unknown,
                  tokenizer);
            });
          },
          nb::arg("s3gen"),
          nb::arg("voice_encoder"),
          nb::arg("tokenizer") = nb::none(),
          "The models and the names of tensors they do not know.")
      .def_prop_ro("weight_bytes", &VoiceBaker::weight_bytes)
      .def(
          "bake",
          [](const VoiceBaker& baker,
             const Floats& at_24k,
             const Floats& at_16k,
             int prompt_tokens) {
            Recording recording{to_vector(at_24k), to_vector(at_16k)};
            return describe(without_gil(
                [&] { return baker.bake(recording, prompt_tokens); }));
          },
          nb::arg("at_24k"),
          nb::arg("at_16k"),
          nb::arg("prompt_tokens"),
          "What the models make of a recording, by the names of a voice's "
          "fields.");
}
