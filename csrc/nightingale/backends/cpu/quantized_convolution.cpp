#include "nightingale/backends/cpu/quantized_convolution.h"

#include "nightingale/backends/cpu/quantized_product.h"

namespace nightingale::cpu {

mx::array code_conv1d(
    const mx::array& x,
    const ops::Kernel& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s) {
  int rows = shape.output_rows(x.shape(1), w.taps);
  mx::Shape result{x.shape(0), rows, w.filters()};
  storage_of(x); // an Error here, not on the stream's thread
  Arrays inputs{dense(x, s), w.matrix.w};
  EpilogueInputs epilogue_inputs(epilogue, result, inputs, s);
  return make_op(
      "CodeConv1d",
      {result, epilogue.result_dtype(x)},
      std::move(inputs),
      [=, taps = w.taps, filters = w.filters(), bits = w.matrix.bits](
          const Arrays& in, Arrays& out) {
        const auto& x = in[0];
        quantized_product(
            x,
            [&](const auto* data) {
              return conv_windows(x, data, x.shape(2), taps, shape);
            },
            PackedQuantized(in[1], filters, bits),
            epilogue_inputs.on(in, out[0]),
            // With one tap it has a linear's bits on every processor.
            /* batch_invariant */ taps == 1);
      },
      s);
}

} // namespace nightingale::cpu
