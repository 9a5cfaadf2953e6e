#include "nightingale/models/s3gen/flow.h"
#include "bindings.h"
#include "mlx/ops.h"
#include "nightingale/io/dtype.h"

using namespace nightingale;

namespace {

// One mel being solved: Python runs its steps, so that it can stop between
// them.
class MelSolver {
 public:
  MelSolver(std::shared_ptr<Flow> model, MelRequest request)
      : model_(std::move(model)) {
    if (model_->new_frames(request) > 0) {
      state_ = model_->begin(request);
    }
  }

  // One step of the flow; false when none is left.
  bool step() {
    if (!state_ || state_->finished()) {
      return false;
    }
    model_->step(*state_);
    return true;
  }

  // The new frames; ends the work.
  mx::array mel() {
    if (state_) {
      mel_ = model_->finish(std::move(*state_));
      state_.reset();
    }
    return mel_;
  }

 private:
  std::shared_ptr<Flow> model_;
  std::optional<MelState> state_; // none where no frame is to be made
  mx::array mel_ = mx::zeros({0, kMels}, mx::float32);
};

Info describe(const Flow& model) {
  const auto& config = model.config();
  const auto& format = model.format();
  Info info;
  info["encoder_width"] = config.width;
  info["encoder_layers"] = config.layers + config.upper_layers;
  info["channels"] = config.channels;
  info["levels"] = config.middle_levels + 2;
  info["transformers"] = config.transformers;
  info["speaker_size"] = config.speaker_size;
  info["meanflow"] = config.meanflow;
  info["steps"] = config.default_steps();
  info["dtype"] = dtype_name(format.matrices);
  info["bits"] = format.bits > 0 ? nb::cast(format.bits) : nb::none();
  info["products"] = dtype_name(model.product_dtype());
  info["device"] = device_name(format.stream);
  info["weight_bytes"] = model.weight_bytes();
  return info;
}

} // namespace

void bind_flow(nb::module_& m) {
  m.def(
      "sound_tokens",
      [](const Ints& tokens) {
        auto sound = sound_tokens(to_vector(tokens));
        return std::pair(sound.tokens, sound.dropped);
      },
      nb::arg("tokens"),
      "The tokens between start and stop that are sound, and how many were "
      "dropped.");

  nb::class_<MelSolver>(m, "MelSolver")
      .def(
          "step",
          [](MelSolver& solver) {
            return without_gil([&] { return solver.step(); });
          },
          "One step of the flow; False when none is left.")
      .def(
          "mel",
          [](MelSolver& solver) { return to_numpy(solver.mel()); },
          "The new frames: [frames, mels]");

  nb::class_<Flow>(m, "Flow")
      .def_static(
          "load",
          [](std::shared_ptr<TensorFile> file, nb::handle given) {
            auto options = options_from<LoadOptions>(given);
            auto type = dtype_from(options.dtype);
            return load_model([&](auto* unknown) {
              auto s = model_stream(options);
              return Flow::load(
                  file, type, s, unknown, options.bits.value_or(0));
            });
          },
          nb::arg("file"),
          nb::arg("options"),
          "The model and the names of tensors it does not know.")
      .def("describe", &describe)
      .def(
          "solve",
          [](std::shared_ptr<Flow> model,
             const Ints& tokens,
             const Ints& prompt_tokens,
             const FloatRows& prompt_mel,
             const Floats& speaker,
             nb::handle given,
             bool finalize,
             uint32_t sentence,
             int first_frame,
             float temperature,
             const std::optional<FloatRows>& noise) {
            auto options = options_from<SpeechOptions>(given);
            MelRequest request{
                to_vector(tokens),
                {to_vector(prompt_tokens),
                 to_vector(prompt_mel),
                 to_vector(speaker)},
                options.steps,
                finalize,
                options.seed,
                sentence,
                first_frame,
                temperature};
            if (noise) {
              request.noise = to_vector(*noise);
            }
            return without_gil([&] {
              return std::make_shared<MelSolver>(model, std::move(request));
            });
          },
          nb::arg("tokens"),
          nb::arg("prompt_tokens"),
          nb::arg("prompt_mel"),
          nb::arg("speaker"),
          nb::arg("options"),
          nb::kw_only(),
          nb::arg("finalize"),
          nb::arg("sentence") = 0,
          nb::arg("first_frame") = 0,
          nb::arg("temperature") = 1.0f,
          nb::arg("noise").none() = nb::none(),
          "Begins to solve the mel of speech tokens in a voice; options: a "
          "resolved SpeechOptions.");
}
