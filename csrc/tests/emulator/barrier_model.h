#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "nightingale/backends/testing.h"

namespace nightingale::emulator {

// The order in which Metal runs launches that MLX has encoded: those of an
// encoder at the same time, but for barriers and fences. MLX knows of a launch
// its inputs and outputs, and not that it writes to inputs that are its state.
// It mirrors mlx/backend/metal/device.cpp: a barrier before a dispatch that
// reads or writes the output of one since the last barrier, or writes an input
// of one; a fence where an encoder has an input that an earlier one made.
class BarrierModel {
 public:
  // An encoder ends after so many dispatches; MLX's limit depends on the GPU.
  explicit BarrierModel(int dispatches_per_encoder)
      : most_(dispatches_per_encoder) {}

  using Buffer = const void*;

  struct Access {
    Buffer buffer;
    const char* begin;
    const char* end;
    bool writes;
    std::string name; // of what is accessed
  };

  // A dispatch in the order of encoding. `inputs` and `outputs` are what MLX
  // is told, `accesses` what happens. Gives the earlier dispatches that touch
  // the same bytes at a time when this one may run, one of them writing.
  std::vector<std::string> add(
      const std::string& kernel,
      const std::set<Buffer>& inputs,
      const std::set<Buffer>& outputs,
      const std::vector<Access>& accesses);

  int dispatches() const {
    return static_cast<int>(placed_.size());
  }
  int barriers() const {
    return barriers_;
  }

 private:
  struct Place {
    std::string kernel;
    int encoder, epoch;
  };
  struct Earlier {
    int dispatch;
    Access access;
  };

  void encode(const std::set<Buffer>& inputs, const std::set<Buffer>& outputs);
  void end_encoder();
  bool ordered(int earlier, int later) const;

  int most_;
  std::vector<Place> placed_;
  int epoch_ = 0, barriers_ = 0, in_encoder_ = 0;
  std::set<Buffer> prev_inputs_, prev_outputs_;
  // Of each encoder the earlier ones that it waits for, directly or not.
  std::vector<std::set<int>> waits_{{}};
  std::unordered_map<Buffer, int> made_by_; // encoder
  std::set<Buffer> encoder_outputs_;
  std::unordered_map<Buffer, std::vector<Earlier>> accesses_;
};

// In place of a GPU: runs nothing, gives zeros, and has barrier models follow
// the launches, and what MLX computes between them.
class BarrierEmulator : public test_hooks::KernelEmulator {
 public:
  explicit BarrierEmulator(std::vector<int> dispatches_per_encoder);

  void run(const test_hooks::KernelRun& run) override;
  void built(
      const std::vector<mx::array>& inputs,
      const std::vector<mx::array>& outputs) override;
  bool has_tiles() const override {
    return false;
  }

  // From now on MLX is not told of this input of this kernel.
  void hide(std::string kernel, std::string input) {
    hidden_.emplace(std::move(kernel), std::move(input));
  }

  // Forgets what has run, as after waiting for the GPU.
  void restart();

  const std::vector<std::string>& faults() const {
    return faults_;
  }
  const std::vector<BarrierModel>& models() const {
    return models_;
  }

 private:
  void follow(const mx::array& input, const std::vector<mx::array>& leaves);

  std::vector<int> sizes_;
  std::vector<BarrierModel> models_;
  std::vector<std::string> faults_;
  std::set<std::pair<std::string, std::string>> hidden_;
  // Of a launch, by its first output: what each input is computed from by other
  // ops, down to the outputs of launches.
  std::unordered_map<std::uintptr_t, std::vector<std::vector<mx::array>>>
      sources_;
  std::unordered_set<std::uintptr_t> launched_; // outputs of launches
  std::vector<mx::array> held_; // so that no memory is used again
};

} // namespace nightingale::emulator
