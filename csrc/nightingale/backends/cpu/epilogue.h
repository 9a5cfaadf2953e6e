#pragma once

#include "nightingale/backends/cpu/primitive.h"
#include "nightingale/ops/epilogue.h"

namespace nightingale::cpu {

// What Snake multiplies the squared sine by, for each channel. Lasts until the
// calling thread asks for the next.
const float* inverse_alpha(const float* alpha, int count);

// An epilogue on evaluated arrays: the sums of a product in, the result
// out, in the result's type.
struct EpilogueWriter {
  Curve curve = Curve::none;
  const float* bias = nullptr;
  const float* alpha = nullptr; // of Snake
  const float* inverse_alpha = nullptr;
  const void* residual = nullptr;
  void* y = nullptr;
  int64_t stride = 0; // of y and residual
  Storage storage = Storage::f32; // of y and residual

  // The part that makes columns from `column` on.
  EpilogueWriter from_column(int column) const;

  // Writes the rows [row, row + rows), columns [column, column + columns).
  // y itself may hold the sums.
  void operator()(
      const float* sums,
      int64_t sums_stride,
      int row,
      int rows,
      int column,
      int columns) const;
};

// Appends what an epilogue needs to the inputs of an op and finds it again when
// the op runs.
class EpilogueInputs {
 public:
  // shape: of the result
  EpilogueInputs(
      const ops::Epilogue& epilogue,
      const mx::Shape& shape,
      Arrays& inputs,
      mx::Stream s);

  // y: [..., N]. Lasts until the calling thread asks for the next.
  EpilogueWriter on(const Arrays& inputs, mx::array& y) const;

 private:
  Curve curve_;
  int bias_ = 0; // index of the input; 0: none
  int alpha_ = 0;
  int residual_ = 0;
};

} // namespace nightingale::cpu
