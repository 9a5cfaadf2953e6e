#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core_call.h"
#include "mlx/array.h"
#include "mlx/stream.h"
#include "nightingale/options.h"

namespace nb = nanobind;
namespace mx = mlx::core;

void bind_checkpoint(nb::module_& m);
void bind_core_call(nb::module_& m);
void bind_engine(nb::module_& m);
void bind_flow(nb::module_& m);
void bind_testing(nb::module_& m);
void bind_t3(nb::module_& m);
void bind_vocoder(nb::module_& m);
void bind_voice(nb::module_& m);

using Floats =
    nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FloatRows =
    nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Ints =
    nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename T>
auto to_vector(const T& x) {
  using Value = std::remove_const_t<typename T::Scalar>;
  return std::vector<Value>(x.data(), x.data() + x.size());
}

inline mx::array to_array(const FloatRows& x) {
  mx::Shape shape{static_cast<int>(x.shape(0)), static_cast<int>(x.shape(1))};
  return mx::array(x.data(), shape, mx::float32);
}

// The C++ options from the Python object that has a field for each.
template <typename Options>
Options options_from(nb::handle given) {
  Options options;
  Options::each([&](const char* name, auto member, const auto&) {
    auto& value = options.*member;
    value =
        nb::cast<std::remove_reference_t<decltype(value)>>(given.attr(name));
  });
  return options;
}

// What `compute` returns; other Python threads run meanwhile. An Error where
// ops failed while it ran.
template <typename Compute>
auto without_gil(Compute compute) {
  CoreCall call;
  auto result = compute();
  call.check_ops();
  return result;
}

// What `load(unknown)` makes, off the GIL, and the names of tensors it put in
// `unknown`.
template <typename Load>
auto load_model(Load load) {
  return without_gil([&] {
    std::vector<std::string> unknown;
    auto model = load(&unknown);
    return std::pair(
        std::make_shared<decltype(model)>(std::move(model)),
        std::move(unknown));
  });
}

// A stream for one model on the device of its options. It may be used from any
// thread; callers take turns.
mx::Stream model_stream(const nightingale::LoadOptions& options);
const char* device_name(const mx::Stream& stream);

// An array as Python has it.
class NumpyArray : public nb::object {
  static bool is_array(PyObject* x) {
    return nb::ndarray_check(x);
  }

 public:
  NB_OBJECT(NumpyArray, nb::object, "numpy.ndarray", is_array)
};

// Facts about a model, by name.
using Info = nb::typed<nb::dict, nb::str, nb::any>;

// A NumPy array of this shape over the memory of `x`, which is evaluated.
template <typename T>
NumpyArray share(mx::array x, const std::vector<size_t>& shape) {
  auto* owner = new mx::array(std::move(x));
  nb::capsule keep(
      owner, [](void* p) noexcept { delete static_cast<mx::array*>(p); });
  return nb::borrow<NumpyArray>(nb::cast(nb::ndarray<nb::numpy, T>(
      owner->data<T>(), shape.size(), shape.data(), keep)));
}

// A NumPy array over the elements of `x`, evaluated; float32 or int32.
NumpyArray to_numpy(const mx::array& x);

// The type in which Python is given an array: int32 or float32.
mx::Dtype numpy_dtype(mx::Dtype dtype);

std::optional<mx::Dtype> dtype_from(const std::optional<std::string>& name);
