#include "nightingale/backends/gpu/replay.h"

#include <unordered_map>
#include <unordered_set>

#include "mlx/allocator.h"
#include "mlx/primitives.h"
#include "nightingale/backends/gpu/primitives.h"

namespace nightingale::gpu {

// Lists the nodes of a graph, each after those it depends on.
class Recorder {
 public:
  std::shared_ptr<const Recording>
  record(const Arrays& inputs, const Arrays& outputs, long source_bytes) {
    recording_->count_.source_bytes = source_bytes;
    for (const auto& x : inputs) {
      numbers_.emplace(x.id(), next_++);
    }
    for (const auto& x : outputs) {
      if (is_computed(x) || numbers_.contains(x.id()) || !find(x)) {
        return nullptr;
      }
    }
    for (const auto& x : recording_->constants_) {
      numbers_.emplace(x.id(), next_++);
    }
    for (const auto& x : order_) {
      add(x);
    }
    recording_->result_of_.assign(next_, -1);
    for (const auto& x : outputs) {
      recording_->result_of_[numbers_.at(x.id())] =
          recording_->result_shapes_.size();
      recording_->result_shapes_.push_back(x.shape());
      recording_->result_dtypes_.push_back(x.dtype());
    }
    return recording_;
  }

 private:
  // Whether the graph of x ends in known arrays; depth first.
  bool find(const mx::array& x) {
    if (numbers_.contains(x.id()) || !found_.insert(x.id()).second) {
      return true;
    }
    if (is_computed(x)) {
      recording_->constants_.push_back(x);
      return true;
    }
    if (!x.has_primitive()) {
      return false;
    }
    for (const auto& sibling : x.siblings()) {
      found_.insert(sibling.id());
    }
    for (const auto& in : x.inputs()) {
      if (!find(in)) {
        return false;
      }
    }
    order_.push_back(x);
    return true;
  }

  void add(const mx::array& x) {
    Recording::Node node{x.primitive_ptr(), {}, {}, {}};
    for (const auto& in : x.inputs()) {
      node.inputs.push_back(numbers_.at(in.id()));
    }
    for (const auto& out : mx::array(x).outputs()) {
      numbers_.emplace(out.id(), next_++);
      node.shapes.push_back(out.shape());
      node.dtypes.push_back(out.dtype());
    }
    recording_->count_.launches += is_launch(*node.primitive);
    recording_->nodes_.push_back(std::move(node));
  }

  std::shared_ptr<Recording> recording_ = std::make_shared<Recording>();
  std::unordered_map<std::uintptr_t, int> numbers_;
  std::unordered_set<std::uintptr_t> found_;
  Arrays order_;
  int next_ = 0;
};

// Runs a recording as one op.
class Replay : public mx::Primitive {
 public:
  Replay(mx::Stream s, std::shared_ptr<const Recording> recording)
      : Primitive(s), recording_(std::move(recording)) {}

  void eval_cpu(const Arrays& inputs, Arrays& outputs) override {
    run(inputs, outputs, [](mx::Primitive& one, const Arrays& in, Arrays& out) {
      one.eval_cpu(in, out);
    });
  }
  void eval_gpu(const Arrays& inputs, Arrays& outputs) override {
    run(inputs, outputs, [](mx::Primitive& one, const Arrays& in, Arrays& out) {
      one.eval_gpu(in, out);
    });
  }
  const char* name() const override {
    return "Replay";
  }

 private:
  template <typename Eval>
  void run(const Arrays& inputs, Arrays& outputs, Eval eval) {
    const auto& script = *recording_;
    Arrays arrays = inputs;
    arrays.reserve(script.result_of_.size());
    arrays.insert(
        arrays.end(), script.constants_.begin(), script.constants_.end());
    auto between = std::make_shared<Arrays>();
    between->reserve(script.nodes_.size());
    Arrays in, out;
    for (const auto& node : script.nodes_) {
      in.clear();
      out.clear();
      for (int number : node.inputs) {
        in.push_back(arrays[number]);
      }
      for (size_t i = 0; i < node.shapes.size(); ++i) {
        int result = script.result_of_[arrays.size() + i];
        if (result >= 0) {
          out.push_back(outputs[result]);
        } else {
          out.emplace_back(node.shapes[i], node.dtypes[i], nullptr, Arrays{});
          between->push_back(out.back());
        }
      }
      eval(*node.primitive, in, out);
      arrays.insert(arrays.end(), out.begin(), out.end());
    }
    keep(std::move(between), outputs.back());
  }

  // MLX keeps the memory of an op's inputs and outputs until the GPU is done
  // with it. What a replay uses besides is tied to one of the outputs, as its
  // memory would otherwise be reused once nothing on the host refers to it: the
  // intermediate arrays, and the recording, whose constants are weights and
  // caches that are written in place.
  void keep(std::shared_ptr<Arrays> between, mx::array& until) {
    auto& memory = mx::allocator::allocator();
    until.set_data(
        {memory.malloc(until.nbytes()),
         [between, recording = recording_, &memory](auto own) {
           memory.free(own);
         }});
  }

  std::shared_ptr<const Recording> recording_;
};

std::shared_ptr<const Recording>
Recording::of(const Arrays& inputs, const Arrays& outputs, long source_bytes) {
  return Recorder().record(inputs, outputs, source_bytes);
}

Arrays Recording::replay(
    std::shared_ptr<const Recording> recording,
    const Arrays& inputs,
    mx::Stream s) {
  count_launches(recording->count_);
  auto shapes = recording->result_shapes_;
  auto dtypes = recording->result_dtypes_;
  shapes.push_back({1});
  dtypes.push_back(mx::uint8);
  auto outputs = mx::array::make_arrays(
      std::move(shapes),
      dtypes,
      std::make_shared<Replay>(s, std::move(recording)),
      inputs);
  outputs.pop_back();
  return outputs;
}

} // namespace nightingale::gpu
