#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace nightingale {

// Whether `text` is well-formed UTF-8: no overlong forms, no surrogates,
// nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Appends one code point, which must be a Unicode scalar value.
void append_utf8(std::string& text, uint32_t code_point);

} // namespace nightingale
