#pragma once

#include <string>

namespace nightingale {

// The bits of the codes that T3 keeps a tensor as where it is loaded with
// `bits`; 0 where it stays in floats, as all do where `bits` is 0. Decoding
// reads the backbone's matrices and the head, which is small and chooses the
// token: 8 bits at least.
int t3_bits(const std::string& name, int bits);

} // namespace nightingale
