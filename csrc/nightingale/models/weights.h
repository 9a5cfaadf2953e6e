#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
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
  Weights(std::shared_ptr<const TensorFile> file, mx::Dtype dtype);

  const TensorFile& file() const {
    return *file_;
  }

  mx::Dtype dtype() const {
    return dtype_;
  }

  bool has(const std::string& name) const;
  mx::Shape shape(const std::string& name) const;

  // The tensor of exactly this shape, where -1 accepts any size, as `dtype`.
  mx::array
  take(const std::string& name, const mx::Shape& expected, mx::Dtype dtype);
  mx::array take(const std::string& name, const mx::Shape& expected);

  // Tensors of the same shape but for their first dimension, one below the
  // other in one buffer.
  mx::array take_rows(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      mx::Dtype dtype);
  mx::array take_rows(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each);

  // The same as the matrix of a product on `s`. What is quantized in the file
  // stays so; floats are quantized to `bits`, or are kept where that is 0.
  ops::Matrix take_matrix(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      int bits,
      mx::Stream s);

  // For products over many frames: quantized to `bits`, or as the file has it,
  // where rows are whole groups; floats as `dtype` elsewhere and where `bits`
  // is 0.
  ops::Matrix take_frame_matrix(
      const std::vector<std::string>& names,
      const mx::Shape& expected_each,
      mx::Dtype dtype,
      int bits,
      mx::Stream s);

  // take_conv likewise, the channels of each tap being whole groups. A
  // quantized kernel of a file has groups across taps: it is quantized anew.
  ops::Kernel take_frame_conv(
      const std::string& layer,
      const mx::Shape& expected,
      mx::Dtype dtype,
      int bits,
      mx::Stream s);

  // The kernel of a convolution, [O, C, K] in the file, as the ops read it:
  // [O, K, C]. Weight normalisation, under its old or its new names, is folded
  // into it. `layer` is the name without ".weight".
  mx::array take_conv(
      const std::string& layer,
      const mx::Shape& expected,
      mx::Dtype dtype);
  mx::array take_conv(const std::string& layer, const mx::Shape& expected);

  // The same of a transposed convolution, [C, O, K] in the file.
  mx::array take_conv_transpose(
      const std::string& layer,
      const mx::Shape& expected,
      mx::Dtype dtype);

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
  ops::Matrix quantized(
      const std::vector<std::string>& names,
      const mx::Shape& shape,
      int bits,
      mx::Stream s);
  // Reads a tensor as float32 and counts it as taken.
  std::vector<float> read(const std::string& name, const mx::Shape& expected);
  // The [A, B, K] kernel of a layer, weight normalisation folded.
  std::vector<float> read_kernel(
      const std::string& layer,
      const mx::Shape& expected);
  // Whether one of the two namings of weight normalisation is there: the names
  // of the gains and of the directions.
  std::optional<std::pair<std::string, std::string>> norm_names(
      const std::string& layer) const;
  // The same as [O, K, C]; `transposed` says that A is C.
  std::vector<float> ordered_kernel(
      const std::string& layer,
      const mx::Shape& expected,
      bool transposed);
  mx::array take_kernel(
      const std::string& layer,
      const mx::Shape& expected,
      bool transposed,
      mx::Dtype dtype);
  [[noreturn]] void fail(const std::string& name, const std::string& message)
      const;

  std::shared_ptr<const TensorFile> file_;
  mx::Dtype dtype_;
  std::set<std::string> taken_;
  WeightMemory memory_;
  size_t nbytes_ = 0;
};

} // namespace nightingale
