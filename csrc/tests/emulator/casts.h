#pragma once

#include <string>

namespace nightingale::emulator {

// `source` with `(const device T*)p` as reinterpret_cast<const device T*>(p):
// clang lets the short form change the address space and take const away, Metal
// does not let it change the address space, and only launch() takes const away.
std::string with_checked_casts(const std::string& source);

} // namespace nightingale::emulator
