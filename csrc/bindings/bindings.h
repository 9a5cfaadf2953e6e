#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "mlx/array.h"

namespace nb = nanobind;
namespace mx = mlx::core;

void bind_checkpoint(nb::module_& m);
void bind_machine(nb::module_& m);
void bind_ops(nb::module_& m);
void bind_t3(nb::module_& m);

// A NumPy array over the elements of `x`, evaluated; float32 or int32.
nb::object to_numpy(const mx::array& x);

// The type in which Python is given an array: int32 or float32.
mx::Dtype numpy_dtype(mx::Dtype dtype);

mx::Dtype dtype_from(const std::string& name);
