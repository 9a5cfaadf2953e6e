#pragma once

#include "nightingale/backends/gpu/kernel.h"

namespace nightingale::gpu {

// What a launch asks for, told apart by number: taken at every launch, so
// without making a string.
class Fingerprint {
 public:
  void add(uint64_t value) {
    hash_ = (hash_ ^ value) * 1099511628211ull; // FNV-1a
  }
  void add(const char* text) {
    for (; *text; ++text) {
      add(static_cast<uint64_t>(*text));
    }
    add(uint64_t(256));
  }
  void add(mx::Dtype type) {
    add(static_cast<uint64_t>(type.val()));
  }
  void add(const mx::fast::TemplateArg& value) {
    if (auto type = std::get_if<mx::Dtype>(&value)) {
      add(*type);
    } else if (auto number = std::get_if<int>(&value)) {
      add(static_cast<uint64_t>(*number));
    } else {
      add(static_cast<uint64_t>(std::get<bool>(value)));
    }
  }
  uint64_t value() const {
    return hash_;
  }

 private:
  uint64_t hash_ = 14695981039346656037ull;
};

// The kernel and its inputs and outputs.
inline Fingerprint text_of(const Launch& launch) {
  Fingerprint text;
  text.add(launch.kernel);
  for (const auto& name : launch.absent) {
    text.add(name.c_str());
  }
  return text;
}

// And what it is compiled for, constants and types: what decides which sizes
// are accepted.
inline Fingerprint instance_of(const Launch& launch) {
  auto instance = text_of(launch);
  for (const auto& constant : launch.constants) {
    instance.add(constant.second);
  }
  for (const auto& x : launch.inputs) {
    instance.add(x.dtype());
  }
  for (const auto& x : launch.state) {
    instance.add(x.dtype());
  }
  for (const auto& out : launch.outputs) {
    instance.add(out.dtype);
  }
  return instance;
}

} // namespace nightingale::gpu
