#pragma once

#include <vector>

#include "mlx/array.h"

namespace nightingale {

namespace mx = mlx::core;

// The elements of an array, evaluated, in the order of its rows.
std::vector<float> host_floats(const mx::array& x);

bool all_finite(const std::vector<float>& values);

} // namespace nightingale
