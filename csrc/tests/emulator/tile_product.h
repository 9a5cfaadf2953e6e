#pragma once

#include <array>

#include "emulator/machine.h"

namespace nightingale::emulator {

// Two of PTX's mma.m16n8k16 with sums in float32, of all lanes at once: each
// lane's numbers are the elements of the matrices that the PTX manual gives it.
void multiply_tiles(const std::array<const TileRegisters*, 32>& lanes);

} // namespace nightingale::emulator
