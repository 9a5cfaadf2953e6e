#include "bindings.h"
#include "mlx/device.h"
#include "mlx/stream.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/reference/ops.h"

using namespace nightingale;

// Only for tests: the ops of the sampling chain by backend, compared with other
// implementations. `form` is "cpu" for our primitives or "gpu" for the graph
// of MLX ops, which runs on whatever device MLX has.

namespace {

bool is_cpu(const std::string& form) {
  if (form != "cpu" && form != "gpu") {
    throw std::invalid_argument(
        "form must be 'cpu' or 'gpu', not '" + form + "'");
  }
  return form == "cpu";
}

mx::Stream stream_for(const std::string& form) {
  return mx::default_stream(
      is_cpu(form) || !mx::is_available(mx::Device::gpu) ? mx::Device::cpu
                                                         : mx::Device::gpu);
}

} // namespace

void bind_testing(nb::module_& m) {
  auto ops_module = m.def_submodule("ops");
  ops_module.def(
      "filter_logits",
      [](const mx::array& logits,
         const mx::array& seen,
         nb::handle options,
         const std::string& form,
         bool penalty_last) {
        auto run = is_cpu(form) ? cpu::filter_logits : reference::filter_logits;
        return run(
            logits,
            seen,
            options_from<SpeechOptions>(options),
            penalty_last ? ops::SamplingOrder::penalty_last
                         : ops::SamplingOrder::penalty_first,
            stream_for(form));
      },
      nb::arg("logits"),
      nb::arg("seen"),
      nb::arg("options"),
      nb::arg("form") = "cpu",
      nb::arg("penalty_last") = false);
  ops_module.def(
      "draw_token",
      [](const mx::array& logits,
         uint64_t seed,
         uint32_t sentence,
         uint32_t position,
         const std::string& form) {
        auto key =
            draw_key({seed, DrawStage::speech_token, sentence, position});
        auto run = is_cpu(form) ? cpu::draw_token : reference::draw_token;
        return run(logits, key, stream_for(form));
      },
      nb::arg("logits"),
      nb::arg("seed"),
      nb::arg("sentence"),
      nb::arg("position"),
      nb::arg("form") = "cpu");
  ops_module.def("alignment_start", [] {
    auto state = ops::AlignmentState::start();
    return std::pair(state.marks, state.sums);
  });
  ops_module.def(
      "alignment_step",
      [](const std::vector<mx::array>& weights,
         const mx::array& logits,
         const mx::array& token,
         const mx::array& marks,
         const mx::array& sums,
         int stop_token,
         const std::string& form) {
        auto run =
            is_cpu(form) ? cpu::alignment_step : reference::alignment_step;
        auto step =
            run({weights, logits, token, stop_token},
                {marks, sums},
                stream_for(form));
        return nb::make_tuple(step.logits, step.state.marks, step.state.sums);
      },
      nb::arg("weights"),
      nb::arg("logits"),
      nb::arg("token"),
      nb::arg("marks"),
      nb::arg("sums"),
      nb::arg("stop_token"),
      nb::arg("form") = "cpu");
}
