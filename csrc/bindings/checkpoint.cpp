#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "bindings.h"
#include "mlx/allocator.h"
#include "mlx/transforms.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/quantized_tensors.h"
#include "nightingale/io/strided_file.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/ops/matrix.h"

using nightingale::TensorFile;

namespace {

// The bytes of an array as they lie in a file: uint8 [nbytes].
NumpyArray to_bytes(mx::array x) {
  auto* owner = new mx::array(std::move(x));
  nb::capsule keep(
      owner, [](void* p) noexcept { delete static_cast<mx::array*>(p); });
  return nb::borrow<NumpyArray>(
      nb::cast(nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(
          owner->data<uint8_t>(), {owner->nbytes()}, keep)));
}

std::tuple<NumpyArray, NumpyArray, NumpyArray>
quantize(const TensorFile& file, const std::string& name, int bits) {
  std::optional<nightingale::ops::QuantizedTensor> parts;
  {
    nb::gil_scoped_release release;
    const auto& info = file.info(name);
    auto data = mx::allocator::malloc(info.size * sizeof(float));
    int rows = info.shape.at(0);
    int columns = static_cast<int>(info.size / std::max(rows, 1));
    if (columns % nightingale::kQuantizedGroup != 0) {
      columns = nightingale::kQuantizedGroup;
      rows = static_cast<int>(info.size / columns);
    }
    mx::array matrix(std::move(data), {rows, columns}, mx::float32);
    file.read(name, mx::float32, matrix.data<void>());
    auto s = mx::default_stream(mx::Device::cpu);
    parts = nightingale::ops::Matrix::quantized(matrix, bits, s).unpacked();
    mx::eval(parts->quantized, parts->scales, parts->biases);
  }
  return {
      to_bytes(parts->quantized),
      to_bytes(parts->scales),
      to_bytes(parts->biases)};
}

using Ranges =
    std::vector<std::tuple<std::string, uint64_t, uint64_t, uint32_t>>;
using Tensors = std::vector<std::tuple<
    std::string,
    std::string,
    std::string,
    int64_t,
    std::vector<int64_t>,
    std::vector<int64_t>>>;

std::shared_ptr<TensorFile> open_strided(
    const std::string& path,
    const Ranges& ranges,
    const Tensors& tensors,
    std::vector<std::pair<std::string, double>> scalars) {
  nightingale::StridedLayout layout;
  for (const auto& [name, offset, size, crc] : ranges) {
    layout.ranges.push_back({name, offset, size, crc});
  }
  for (const auto& [name, type, range, offset, shape, strides] : tensors) {
    auto dtype = nightingale::find_dtype(type);
    if (!dtype) {
      throw std::invalid_argument("there is no dtype '" + type + "'");
    }
    layout.tensors.push_back({name, *dtype, range, offset, shape, strides});
  }
  layout.scalars = std::move(scalars);
  return std::const_pointer_cast<TensorFile>(
      nightingale::open_strided_file(path, layout));
}

// The elements as they are in a file of their type: uint8 [nbytes].
NumpyArray stored_bytes(const TensorFile& file, const std::string& name) {
  const auto& info = file.info(name);
  mx::array tensor(
      mx::allocator::malloc(info.nbytes()), info.shape, info.dtype);
  file.read(name, info.dtype, tensor.data<void>());
  return to_bytes(std::move(tensor));
}

} // namespace

void bind_checkpoint(nb::module_& m) {
  nb::class_<TensorFile>(m, "TensorFile")
      .def_static(
          "open",
          [](const std::string& path) {
            return std::const_pointer_cast<TensorFile>(TensorFile::open(path));
          },
          nb::arg("path"))
      .def_static(
          "open_strided",
          &open_strided,
          nb::arg("path"),
          nb::arg("ranges"),
          nb::arg("tensors"),
          nb::arg("scalars"),
          "A file whose format the caller has read. ranges: name, offset, "
          "bytes and CRC-32 each; tensors: name, dtype, the range's name, "
          "offset, shape and strides in elements each.")
      .def("names", &TensorFile::names)
      .def("__contains__", &TensorFile::contains, nb::arg("name"))
      .def(
          "shape",
          [](const TensorFile& file, const std::string& name) {
            const auto& shape = file.info(name).shape;
            return nb::typed<nb::tuple, int, nb::ellipsis>(
                nb::cast(std::vector<int>(shape.begin(), shape.end())));
          },
          nb::arg("name"))
      .def(
          "dtype",
          [](const TensorFile& file, const std::string& name) {
            return nightingale::dtype_name(file.info(name).dtype);
          },
          nb::arg("name"))
      .def(
          "bits",
          &TensorFile::bits,
          nb::arg("name"),
          "Bits of a quantized tensor, 0 for other tensors.")
      .def(
          "fewest_bits",
          &TensorFile::fewest_bits,
          "The fewest bits of any quantized tensor, 0 where none is.")
      .def("metadata", &TensorFile::metadata, nb::arg("key"))
      .def(
          "scalar",
          &TensorFile::scalar,
          nb::arg("name"),
          "A plain number of a torch file; None where there is none.")
      .def(
          "stored_bytes",
          &stored_bytes,
          nb::arg("name"),
          "The tensor's elements in its own type: uint8 [nbytes].")
      .def(
          "quantize",
          &quantize,
          nb::arg("name"),
          nb::arg("bits"),
          "The tensor, its rows flattened, as the bytes of MLX's words "
          "(uint32), scales and biases (float16). Rows that are no whole "
          "groups of 64 follow each other in rows of one group.")
      .def(
          "read",
          [](const TensorFile& file, const std::string& name) {
            const auto& info = file.info(name);
            auto dtype = numpy_dtype(info.dtype);
            auto data = mx::allocator::malloc(info.size * dtype.size());
            mx::array tensor(std::move(data), info.shape, dtype);
            file.read(name, dtype, tensor.data<void>());
            return to_numpy(tensor);
          },
          nb::arg("name"),
          "The tensor as a NumPy array, float32 or int32.");
}
