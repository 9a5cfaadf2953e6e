#include "nightingale/backends/cpu/epilogue.h"

#include <string>

#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"

namespace nightingale::cpu {

namespace {

struct InverseAlpha;

Curve curve_of(const ops::Epilogue& epilogue) {
  if (!epilogue.snake) {
    return static_cast<Curve>(epilogue.activation);
  }
  if (epilogue.activation != ops::Activation::none) {
    throw Error("an epilogue has an activation or a Snake, not both");
  }
  return Curve::snake;
}

static_assert(
    static_cast<Curve>(ops::Activation::gelu_tanh) == Curve::gelu_tanh);

void check_size(const char* what, const mx::array& x, int64_t size) {
  if (static_cast<int64_t>(x.size()) != size) {
    throw Error(
        "an epilogue's " + std::string(what) + " has " +
        std::to_string(x.size()) + " elements; its product needs " +
        std::to_string(size));
  }
}

template <typename T>
T* advanced(T* p, int64_t count, Storage storage) {
  using Bytes = std::conditional_t<std::is_const_v<T>, const char, char>;
  return p ? static_cast<Bytes*>(p) + count * storage_bytes(storage) : nullptr;
}

} // namespace

const float* inverse_alpha(const float* alpha, int count) {
  float* inverse = scratch<InverseAlpha>(count);
  for (int i = 0; i < count; ++i) {
    inverse[i] = 1.0f / (alpha[i] + 1e-9f);
  }
  return inverse;
}

EpilogueWriter EpilogueWriter::from_column(int column) const {
  EpilogueWriter part = *this;
  part.bias = bias ? bias + column : nullptr;
  part.alpha = alpha ? alpha + column : nullptr;
  part.inverse_alpha = inverse_alpha ? inverse_alpha + column : nullptr;
  part.residual = advanced(residual, column, storage);
  part.y = advanced(y, column, storage);
  return part;
}

void EpilogueWriter::operator()(
    const float* sums,
    int64_t sums_stride,
    int row,
    int rows,
    int column,
    int columns) const {
  EpilogueWriter part = from_column(column);
  EpilogueArgs a;
  a.sums = sums;
  a.sums_stride = sums_stride;
  a.rows = rows;
  a.columns = columns;
  a.bias = part.bias;
  a.curve = curve;
  a.alpha = part.alpha;
  a.inverse_alpha = part.inverse_alpha;
  a.residual = advanced(part.residual, row * stride, storage);
  a.y = advanced(part.y, row * stride, storage);
  a.stride = stride;
  simd().product.epilogue[static_cast<int>(storage)](a);
}

EpilogueInputs::EpilogueInputs(
    const ops::Epilogue& epilogue,
    const mx::Shape& shape,
    Arrays& inputs,
    mx::Stream s)
    : curve_(curve_of(epilogue)) {
  int64_t columns = shape.back(), size = 1;
  for (int each : shape) {
    size *= each;
  }
  auto add = [&](const mx::array& x) {
    inputs.push_back(x);
    return static_cast<int>(inputs.size()) - 1;
  };
  if (epilogue.bias) {
    check_size("bias", *epilogue.bias, columns);
    bias_ = add(as_float(*epilogue.bias, s));
  }
  if (epilogue.snake) {
    check_size("Snake's alpha", *epilogue.snake, columns);
    alpha_ = add(as_float(*epilogue.snake, s));
  }
  if (epilogue.residual) {
    check_size("residual", *epilogue.residual, size);
    storage_of(*epilogue.residual); // an Error here, not on the stream's thread
    residual_ = add(dense(*epilogue.residual, s));
  }
}

EpilogueWriter EpilogueInputs::on(const Arrays& inputs, mx::array& y) const {
  EpilogueWriter f;
  f.curve = curve_;
  f.bias = bias_ ? inputs[bias_].data<float>() : nullptr;
  f.residual = residual_ ? inputs[residual_].data<void>() : nullptr;
  f.y = y.data<void>();
  f.stride = y.shape(-1);
  f.storage = storage_of(y);
  if (alpha_) {
    f.alpha = inputs[alpha_].data<float>();
    f.inverse_alpha = inverse_alpha(f.alpha, f.stride);
  }
  return f;
}

} // namespace nightingale::cpu
