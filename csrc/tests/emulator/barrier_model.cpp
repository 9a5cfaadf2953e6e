#include "emulator/barrier_model.h"

#include <algorithm>
#include <cstring>

namespace nightingale::emulator {

namespace {

using Buffer = BarrierModel::Buffer;
using Access = BarrierModel::Access;

Buffer buffer_of(const mx::array& x) {
  return const_cast<mx::array&>(x).buffer().ptr();
}

Access access_of(const mx::array& x, bool writes, const std::string& name) {
  auto* begin = x.data<char>();
  return {buffer_of(x), begin, begin + x.nbytes(), writes, name};
}

bool conflict(const Access& a, const Access& b) {
  return (a.writes || b.writes) && a.begin < b.end && b.begin < a.end;
}

bool is_evaluated(const mx::array& x) {
  return x.status() != mx::array::Status::unscheduled;
}

} // namespace

std::vector<std::string> BarrierModel::add(
    const std::string& kernel,
    const std::set<Buffer>& inputs,
    const std::set<Buffer>& outputs,
    const std::vector<Access>& accesses) {
  encode(inputs, outputs);
  int now = dispatches();
  placed_.push_back({kernel, static_cast<int>(waits_.size()) - 1, epoch_});
  std::vector<std::string> faults;
  for (const auto& access : accesses) {
    auto& earlier = accesses_[access.buffer];
    bool after_all = true;
    for (const auto& [dispatch, other] : earlier) {
      bool safe = ordered(dispatch, now);
      after_all &= safe;
      if (!safe && conflict(access, other)) {
        faults.push_back(
            kernel + (access.writes ? " writes " : " reads ") + access.name +
            " while " + placed_[dispatch].kernel +
            (other.writes ? " writes " : " reads ") + other.name +
            ": no barrier between dispatches " + std::to_string(dispatch) +
            " and " + std::to_string(now));
      }
    }
    bool whole =
        std::all_of(earlier.begin(), earlier.end(), [&](const auto& one) {
          return access.begin <= one.access.begin &&
              one.access.end <= access.end;
        });
    if (access.writes && after_all && whole) {
      earlier.clear(); // who comes after this one comes after those
    }
  }
  for (const auto& access : accesses) {
    accesses_[access.buffer].push_back({now, access});
  }
  return faults;
}

void BarrierModel::encode(
    const std::set<Buffer>& inputs,
    const std::set<Buffer>& outputs) {
  if (in_encoder_ == most_) {
    end_encoder();
  }
  ++in_encoder_;
  std::set<Buffer> all = inputs;
  all.insert(outputs.begin(), outputs.end());
  bool barrier = false;
  for (auto buffer : all) {
    barrier |= prev_outputs_.contains(buffer);
    auto made = made_by_.find(buffer);
    if (made != made_by_.end()) {
      auto& waits = waits_.back();
      const auto& theirs = waits_[made->second];
      waits.insert(made->second);
      waits.insert(theirs.begin(), theirs.end());
    }
  }
  for (auto buffer : outputs) {
    barrier |= prev_inputs_.contains(buffer);
  }
  if (barrier) {
    ++epoch_;
    ++barriers_;
    prev_inputs_.clear();
    prev_outputs_.clear();
  }
  prev_inputs_.insert(all.begin(), all.end());
  prev_outputs_.insert(outputs.begin(), outputs.end());
  encoder_outputs_.insert(outputs.begin(), outputs.end());
}

void BarrierModel::end_encoder() {
  int ended = static_cast<int>(waits_.size()) - 1;
  for (auto buffer : encoder_outputs_) {
    made_by_[buffer] = ended;
  }
  encoder_outputs_.clear();
  prev_inputs_.clear();
  prev_outputs_.clear();
  waits_.emplace_back();
  in_encoder_ = 0;
  ++epoch_;
}

bool BarrierModel::ordered(int earlier, int later) const {
  const auto &a = placed_[earlier], &b = placed_[later];
  return a.encoder == b.encoder ? a.epoch < b.epoch
                                : waits_[b.encoder].contains(a.encoder);
}

BarrierEmulator::BarrierEmulator(std::vector<int> dispatches_per_encoder)
    : sizes_(std::move(dispatches_per_encoder)) {
  restart();
}

void BarrierEmulator::restart() {
  models_ = {sizes_.begin(), sizes_.end()};
  faults_.clear();
  sources_.clear();
  launched_.clear();
  held_.clear();
}

void BarrierEmulator::built(
    const std::vector<mx::array>& inputs,
    const std::vector<mx::array>& outputs) {
  std::vector<std::vector<mx::array>> sources;
  for (const auto& input : inputs) {
    std::vector<mx::array> leaves, open{input};
    std::unordered_set<std::uintptr_t> seen;
    while (!open.empty()) {
      auto x = open.back();
      open.pop_back();
      if (!seen.insert(x.id()).second) {
        continue;
      }
      if (is_evaluated(x) || launched_.contains(x.id())) {
        leaves.push_back(x);
      } else {
        open.insert(open.end(), x.inputs().begin(), x.inputs().end());
      }
    }
    sources.push_back(std::move(leaves));
  }
  sources_.insert_or_assign(outputs[0].id(), std::move(sources));
  for (const auto& out : outputs) {
    launched_.insert(out.id());
    held_.push_back(out);
  }
}

// Ops of MLX between launches, as one dispatch.
void BarrierEmulator::follow(
    const mx::array& input,
    const std::vector<mx::array>& leaves) {
  std::set<Buffer> from;
  for (const auto& leaf : leaves) {
    if (is_evaluated(leaf)) {
      from.insert(buffer_of(leaf));
    }
  }
  auto made = buffer_of(input);
  if (from.contains(made)) {
    return; // the array itself, or a view of it
  }
  for (auto& model : models_) {
    model.add("an op of MLX", from, {made}, {});
  }
}

void BarrierEmulator::run(const test_hooks::KernelRun& run) {
  auto built = sources_.find(run.outputs[0].id());
  std::set<Buffer> inputs, outputs;
  std::vector<Access> accesses;
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    bool state = i >= run.source.inputs.size();
    const auto& x = run.inputs[i];
    const auto& name = state ? run.source.state[i - run.source.inputs.size()]
                             : run.source.inputs[i];
    if (built != sources_.end()) {
      follow(x, built->second[i]);
    }
    if (!hidden_.contains({run.source.name, name})) {
      inputs.insert(buffer_of(x));
    }
    accesses.push_back(access_of(x, state, name));
    held_.push_back(x);
  }
  for (size_t i = 0; i < run.outputs.size(); ++i) {
    auto& out = run.outputs[i];
    std::memset(out.data<char>(), 0, out.nbytes());
    outputs.insert(buffer_of(out));
    accesses.push_back(access_of(out, true, run.source.outputs[i]));
    held_.push_back(out);
  }
  if (built != sources_.end()) {
    sources_.erase(built);
  }
  for (auto& model : models_) {
    auto found = model.add(run.source.name, inputs, outputs, accesses);
    faults_.insert(faults_.end(), found.begin(), found.end());
  }
}

} // namespace nightingale::emulator
