#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mlx/dtype.h"

namespace nightingale {

namespace mx = mlx::core;

std::string dtype_name(mx::Dtype dtype);
std::optional<mx::Dtype> find_dtype(std::string_view name);
// By its name in a safetensors file: "F16".
std::optional<mx::Dtype> find_stored_dtype(std::string_view name);
bool is_float(mx::Dtype dtype);

// Whether convert_elements knows the pair: any float to any float, any integer
// or bool to int32 or int64, and every type to itself.
bool is_convertible(mx::Dtype from, mx::Dtype to);

// Converts `count` elements. Floats are rounded to nearest, ties to even, and
// NaN stays NaN; any byte but 0 is true. Returns the index of the first integer
// that does not fit, or `count`.
size_t convert_elements(
    const void* src,
    mx::Dtype from,
    void* dst,
    mx::Dtype to,
    size_t count);

// Exposed for the tests.
uint16_t float16_bits(float value);
uint16_t bfloat16_bits(float value);
float float16_value(uint16_t bits);
float bfloat16_value(uint16_t bits);

} // namespace nightingale
