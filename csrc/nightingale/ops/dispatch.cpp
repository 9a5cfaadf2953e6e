#include <tuple>
#include <utility>

#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/gpu/ops.h"
#include "nightingale/error.h"

// Defines the ops: each runs on the backend of its stream.

namespace nightingale::ops {

namespace {

template <typename F>
struct Signature;

template <typename Result_, typename... Arguments>
struct Signature<Result_(Arguments...)> {
  using Result = Result_;
  template <int i>
  using Argument = std::tuple_element_t<i, std::tuple<Arguments...>>;
};

} // namespace

// Signatures are those of the declarations in nightingale/ops/.
#define ARGUMENT(name, i) Signature<decltype(name)>::Argument<i>
#define PARAMETER(name, i) ARGUMENT(name, i) argument##i
#define PASSED(name, i) std::forward<ARGUMENT(name, i)>(argument##i)

#define PARAMETERS_1(name) PARAMETER(name, 0)
#define PARAMETERS_2(name) PARAMETERS_1(name), PARAMETER(name, 1)
#define PARAMETERS_3(name) PARAMETERS_2(name), PARAMETER(name, 2)
#define PARAMETERS_4(name) PARAMETERS_3(name), PARAMETER(name, 3)

#define PASSED_1(name) PASSED(name, 0)
#define PASSED_2(name) PASSED_1(name), PASSED(name, 1)
#define PASSED_3(name) PASSED_2(name), PASSED(name, 2)
#define PASSED_4(name) PASSED_3(name), PASSED(name, 3)

#define DISPATCH(count, name)                                            \
  Signature<decltype(name)>::Result name(                                \
      PARAMETERS_##count(name), mx::Stream s) {                          \
    return (on_cpu(s) ? cpu::name : gpu::name)(PASSED_##count(name), s); \
  }

#define OP DISPATCH
#define COMPOSITE DISPATCH
#include "nightingale/backends/ops.inl"

// Only the backend that makes phases reads them.
DISPATCH(1, start_phases)
DISPATCH(2, frame_phases)

bool can_share_steps(
    const std::vector<DecoderLayer>& layers,
    const Projection& head,
    mx::Stream s) {
  return on_cpu(s) || gpu::can_share_steps(layers, head, s);
}

bool can_share_frames(const FrameNetwork& network, mx::Stream s) {
  return !on_cpu(s) && gpu::can_share_frames(network, s);
}

JoinedInputs join_inputs(
    const std::vector<const OdeState*>& states,
    mx::Stream s) {
  return gpu::join_inputs(states, s);
}

mx::array power_spectrum(const mx::array& frames, mx::Stream s) {
  int size = frames.shape(-1);
  if (size < 2 || size % 2 != 0) {
    throw std::invalid_argument(
        "power_spectrum takes frames of an even number of samples, found " +
        std::to_string(size));
  }
  return cpu::power_spectrum(
      frames, on_cpu(s) ? s : mx::default_stream(mx::Device::cpu));
}

} // namespace nightingale::ops
