#include "nightingale/models/hift/vocoder.h"
#include "bindings.h"
#include "mlx/transforms.h"

using namespace nightingale;

namespace {

SourceDraws make_draws(
    uint64_t seed,
    uint32_t sentence,
    const std::optional<Floats>& phase,
    const std::optional<FloatRows>& noise) {
  SourceDraws draws{seed, sentence};
  if (phase) {
    if (phase->size() != ops::kHarmonics) {
      throw std::invalid_argument(
          "phase has " + std::to_string(phase->size()) + " values; expected " +
          std::to_string(ops::kHarmonics));
    }
    draws.phase.emplace();
    std::copy_n(phase->data(), ops::kHarmonics, draws.phase->begin());
  }
  if (noise) {
    draws.noise = to_array(*noise);
  }
  return draws;
}

} // namespace

void bind_vocoder(nb::module_& m) {
  nb::class_<VocoderState>(m, "VocoderState")
      .def("copy", [](const VocoderState& state) { return state; });

  nb::class_<Vocoder>(m, "Vocoder")
      .def_static(
          "load",
          [](std::shared_ptr<TensorFile> file, nb::handle given) {
            auto options = options_from<LoadOptions>(given);
            // Sums and what stands between products stay in float32.
            bool halves = options.dtype && options.dtype != "float32";
            return load_model([&](auto* unknown) {
              FilterFormat format{options.bits.value_or(0), halves};
              return Vocoder::load(
                  file, model_stream(options), unknown, format);
            });
          },
          nb::arg("file"),
          nb::arg("options"),
          "The model and the names of tensors it does not know.")
      .def_prop_ro("weight_bytes", &Vocoder::weight_bytes)
      .def(
          "begin",
          [](const Vocoder& model,
             uint64_t seed,
             uint32_t sentence,
             const std::optional<Floats>& phase,
             const std::optional<FloatRows>& noise) {
            return model.begin(make_draws(seed, sentence, phase, noise));
          },
          nb::kw_only(),
          nb::arg("seed"),
          nb::arg("sentence") = 0,
          nb::arg("phase").none() = nb::none(),
          nb::arg("noise").none() = nb::none(),
          "The state before the first frame. noise: [samples, 9]")
      .def(
          "feed",
          [](const Vocoder& model,
             VocoderState& state,
             const FloatRows& mel,
             bool last) {
            auto frames = to_array(mel);
            return to_numpy(
                without_gil([&] { return model.feed(state, frames, last); }));
          },
          nb::arg("state"),
          nb::arg("mel"),
          nb::arg("last"),
          "The samples that are ready once these frames, [n, mels], are known.")
      .def(
          "pitch",
          [](const Vocoder& model, const FloatRows& mel) {
            return to_numpy(model.pitch(to_array(mel)));
          },
          nb::arg("mel"),
          "The pitch of a whole mel, [frames, mels], in Hz.");
}
