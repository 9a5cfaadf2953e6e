#pragma once

namespace nightingale::testing {

// Speaks with every model in every precision that a GPU can be asked for, as
// short as it goes: in floats of 32 and 16 bits, with quantized weights and
// caches, with and without guidance and the alignment analyser, whole and in
// chunks. Widths are those of the official checkpoints and of the embedded
// voice, and decide what kernels are compiled for; layers are few, because all
// launch the same.
void speak_with_every_model();

// The same for what kernels compute with tiles, which Metal leaves to MLX; only
// tests launch these there.
void speak_with_tiles();

} // namespace nightingale::testing
