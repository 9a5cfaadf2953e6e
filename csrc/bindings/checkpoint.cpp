#include "bindings.h"
#include "nightingale/checkpoint/weights.h"

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
            return dtype_name(file.info(name).dtype);
          })
      .def("scalar", &TensorFile::scalar)
      .def(
          "read",
          [](std::shared_ptr<TensorFile> file, const std::string& name) {
            const auto& info = file->info(name);
            bool integer = mx::issubdtype(info.dtype, mx::integer);
            auto dtype = integer ? mx::int32 : mx::float32;
            nightingale::Weights weights(file, dtype);
            return to_numpy(weights.take(name, info.shape, dtype));
          },
          nb::arg("name"),
          "The tensor as a NumPy array, float32 or int32.");
}
