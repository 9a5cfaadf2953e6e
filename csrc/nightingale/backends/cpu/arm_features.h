#pragma once

// Instructions that only some ARM processors have; the system is asked.

namespace nightingale::cpu {

// Products of bytes, four at a time (sdot).
bool has_dot_products();

// Products of two rows of eight bytes by two (smmla).
bool has_byte_matrix_products();

// Products of two rows of four bfloat16 numbers by two (bfmmla).
bool has_bf16_matrix_products();

} // namespace nightingale::cpu
