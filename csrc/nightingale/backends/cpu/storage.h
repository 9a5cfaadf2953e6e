#pragma once

namespace nightingale::cpu {

// How the elements of an array are stored.
enum class Storage { f32, f16, bf16 };

constexpr int storage_bytes(Storage storage) {
  return storage == Storage::f32 ? 4 : 2;
}

} // namespace nightingale::cpu
