#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <tuple>

#include "bindings.h"
#include "mlx/ops.h"
#include "nightingale/io/dtype.h"
#include "nightingale/io/quantized_tensors.h"
#include "nightingale/io/strided_file.h"
#include "nightingale/io/tensor_file.h"
#include "nightingale/memory.h"
#include "nightingale/ops/matrix.h"

using nightingale::TensorFile;

namespace {

// The bytes of an array as they lie in a file: uint8 [nbytes].
NumpyArray to_bytes(const mx::array& x) {
  return share<uint8_t>(x, {x.nbytes()});
}

// A tensor's elements as `dtype`, in `shape` of as many.
mx::array read_tensor(
    const TensorFile& file,
    const std::string& name,
    const mx::Shape& shape,
    mx::Dtype dtype) {
  auto data = nightingale::allocate(file.info(name).size * dtype.size());
  mx::array tensor(std::move(data), shape, dtype);
  file.read(name, dtype, tensor.data<void>());
  return tensor;
}

std::tuple<NumpyArray, NumpyArray, NumpyArray> quantize(
    const TensorFile& file,
    const std::string& name,
    int bits,
    bool transposed) {
  auto parts = without_gil([&] {
    const auto& info = file.info(name);
    int rows = info.shape.at(0);
    int columns = static_cast<int>(info.size / std::max(rows, 1));
    if (columns % nightingale::kQuantizedGroup != 0) {
      columns = nightingale::kQuantizedGroup;
      rows = static_cast<int>(info.size / columns);
    }
    auto s = mx::default_stream(mx::Device::cpu);
    auto matrix = read_tensor(file, name, {rows, columns}, mx::float32);
    if (transposed) {
      matrix = mx::contiguous(mx::transpose(matrix, s), false, s);
      matrix.eval();
    }
    return nightingale::ops::Matrix::quantized(matrix, bits, s).unpacked();
  });
  return {
      to_bytes(parts.quantized),
      to_bytes(parts.scales),
      to_bytes(parts.biases)};
}

using Ranges = std::vector<
    std::tuple<std::string, uint64_t, uint64_t, std::optional<uint32_t>>>;
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
    std::vector<std::pair<std::string, double>> scalars,
    bool quantized) {
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
  layout.quantized = quantized;
  return std::const_pointer_cast<TensorFile>(
      nightingale::open_strided_file(path, layout));
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
          nb::arg("quantized") = false,
          "A file whose format the caller has read. ranges: name, offset, "
          "bytes and CRC-32, if any, each; tensors: name, dtype, the range's "
          "name, "
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
          [](const TensorFile& file, const std::string& name) {
            const auto& info = file.info(name);
            return to_bytes(read_tensor(file, name, info.shape, info.dtype));
          },
          nb::arg("name"),
          "The tensor's elements in its own type: uint8 [nbytes].")
      .def(
          "quantize",
          &quantize,
          nb::arg("name"),
          nb::arg("bits"),
          nb::arg("transposed") = false,
          "The tensor, its rows flattened, as the bytes of MLX's words "
          "(uint32), scales and biases (float16). Rows that are no whole "
          "groups of 64 follow each other in rows of one group.")
      .def(
          "read",
          [](const TensorFile& file, const std::string& name) {
            const auto& info = file.info(name);
            return to_numpy(
                read_tensor(file, name, info.shape, numpy_dtype(info.dtype)));
          },
          nb::arg("name"),
          "The tensor as a NumPy array, float32 or int32.");
}
