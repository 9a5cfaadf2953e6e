#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "mlx/array.h"
#include "mlx/dtype.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/io/weight_memory.h"
#include "nightingale/ops/convolution.h"

namespace nightingale {

namespace mx = mlx::core;

// What a model is built from: hands out the tensors of a file by name, checks
// that they are what the model expects and remembers which were taken.
class Weights {
 public:
  // `dtype` is the type for the model's matrices, where a call gives none.
  Weights(std::shared_ptr<const TensorFile> file, mx::Dtype dtype)
      : file_(std::move(file)), dtype_(dtype) {}

  const TensorFile& file() const {
    return *file_;
  }

  mx::Dtype dtype() const {
    return dtype_;
  }

  bool has(const std::string& name) const {
    return file_->contains(name);
  }
  mx::Shape shape(const std::string& name) const {
    return find(name).shape;
  }

  // The tensor of exactly this shape, where -1 accepts any size, as `dtype` or
  // as the model's matrices are.
  mx::array take(
      const std::string& name,
      const mx::Shape& expected,
      std::optional<mx::Dtype> dtype = std::nullopt);

  // Tensors of the same shape but for their first dimension, one below the
  // other in one buffer.
  mx::array take_rows(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      std::optional<mx::Dtype> dtype = std::nullopt);

  // The same as the matrix of a product on `s`. What is quantized in the file
  // stays so; floats are quantized to `bits`, or are kept where that is 0.
  ops::Matrix take_matrix(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      int bits,
      mx::Stream s);

  // The matrix [N, K] of a product on `s`, whose floats are [K, N] in the file,
  // as GPT-2's are. Quantized weights are [N, K] there, too.
  ops::Matrix take_transposed(
      const std::string& name,
      const mx::Shape& expected,
      int bits,
      mx::Stream s);

  // The kernel of a convolution, [O, C, K] in the file, or [C, O, K] where it
  // is a transposed one, as the ops read it: [O, K, C]. Weight normalisation,
  // under its old or its new names, is folded into it. `layer` is the name
  // without ".weight".
  mx::array take_conv(
      const std::string& layer,
      const mx::Shape& expected,
      std::optional<mx::Dtype> dtype = std::nullopt,
      bool transposed = false);

  // The same of [O, C, K], quantized to `bits`. What is quantized in the file
  // has groups across taps: it is quantized anew.
  ops::Kernel take_quantized_conv(
      const std::string& layer,
      const mx::Shape& expected,
      int bits,
      mx::Stream s);

  // Names never taken and not among `ignored`: exact names, or prefixes that
  // end in '*'.
  std::vector<std::string> unused(
      const std::vector<std::string>& ignored) const;

  // Bytes of everything taken, in the types it was taken as.
  size_t nbytes() const {
    return nbytes_;
  }

 private:
  const TensorInfo& find(const std::string& name) const;
  const TensorInfo& check(
      const std::string& name,
      const mx::Shape& expected,
      mx::Dtype dtype) const;
  // The shape of tensors one below the other.
  mx::Shape check_rows(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      mx::Dtype dtype) const;
  void read_rows(
      const std::vector<std::string>& names,
      mx::Dtype dtype,
      mx::array& rows);
  ops::Matrix read_quantized(
      const std::vector<std::string>& names,
      const mx::Shape& shape,
      mx::Stream s);
  ops::Matrix quantized(const mx::array& floats, int bits, mx::Stream s) const;
  // The matrix of a product; on a GPU, scales and biases are `dtype`.
  ops::Matrix
  on_stream(const ops::QuantizedTensor& tensor, int bits, mx::Stream s) const;
  // Reads a tensor as float32 and counts it as taken.
  std::vector<float> read(const std::string& name, const mx::Shape& expected);
  // The kernel of a layer as the file has it, weight normalisation folded.
  std::vector<float> read_kernel(
      const std::string& layer,
      const mx::Shape& expected);
  [[noreturn]] void fail(const std::string& name, const std::string& message)
      const;

  std::shared_ptr<const TensorFile> file_;
  mx::Dtype dtype_;
  std::set<std::string> taken_;
  WeightMemory memory_;
  size_t nbytes_ = 0;
};

} // namespace nightingale
