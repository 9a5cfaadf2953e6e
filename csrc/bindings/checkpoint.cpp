#include "bindings.h"
#include "mlx/allocator.h"
#include "nightingale/checkpoint/dtype.h"
#include "nightingale/checkpoint/tensor_file.h"

using nightingale::TensorFile;

void bind_checkpoint(nb::module_& m) {
  nb::class_<TensorFile>(m, "TensorFile")
      .def_static(
          "open",
          [](const std::string& path) {
            return std::const_pointer_cast<TensorFile>(TensorFile::open(path));
          },
          nb::arg("path"))
      .def("names", &TensorFile::names)
      .def("__contains__", &TensorFile::contains)
      .def(
          "shape",
          [](const TensorFile& file, const std::string& name) {
            const auto& shape = file.info(name).shape;
            return nb::tuple(
                nb::cast(std::vector<int>(shape.begin(), shape.end())));
          })
      .def(
          "dtype",
          [](const TensorFile& file, const std::string& name) {
            return nightingale::dtype_name(file.info(name).dtype);
          })
      .def("scalar", &TensorFile::scalar)
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
