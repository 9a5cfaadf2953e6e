#include "nightingale/backends/cpu/primitive.h"

#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <string_view>

#include "mlx/backend/cpu/encoder.h"
#include "mlx/ops.h"
#include "nightingale/backends/cpu/buffers.h"
#include "nightingale/backends/cpu/ops.h"
#include "nightingale/backends/cpu/threads.h"
#include "nightingale/error.h"

namespace nightingale::cpu {

namespace {

struct ConvertedInput;

std::atomic<bool> stopped{false};

struct Failures {
  std::mutex mutex;
  uint64_t count = 0;
  std::string last;
};

// Of the ops of the calling thread, where it is a side stream's.
thread_local std::string* side_failure = nullptr;

Failures& failures() {
  // Never destroyed: a stream's thread may still run an op at process exit.
  static auto* instance = new Failures;
  return *instance;
}

void keep_failure(const std::string& what) {
  if (side_failure) {
    *side_failure = what;
    return;
  }
  auto& all = failures();
  std::lock_guard<std::mutex> lock(all.mutex);
  ++all.count;
  all.last = what;
}

// Waits until all that is queued has run and let go of its inputs.
void drain(mx::Stream s) {
  std::atomic<bool> reached{false};
  mx::cpu::get_command_encoder(s).dispatch([&reached] {
    reached.store(true);
    reached.notify_one();
  });
  reached.wait(false);
}

// Memory for a result. The host runs ahead of the stream, whose ops still hold
// buffers they will not need for long: it waits for those before it asks the
// system for another, so that no more are ever made than the graph needs.
void allocate_result(mx::array& y, mx::Stream s) {
  if (!has_idle(y.nbytes())) {
    drain(s);
  }
  auto data = pooled_data(y.nbytes());
  auto offset = static_cast<int64_t>(line_offset(data.buffer()));
  bool is_column = y.size() <= 1 || y.ndim() <= 1;
  y.set_data(
      std::move(data),
      y.size(),
      y.strides(),
      {.contiguous = true, .row_contiguous = true, .col_contiguous = is_column},
      offset);
}

std::string failure_text(const std::exception& error) {
  bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  return no_memory ? "out of memory" : error.what();
}

// What an op does on the stream's thread, where nobody can catch an exception.
struct Body {
  std::vector<std::optional<int>> in_place_of;
  Work work;

  void run(const Arrays& inputs, Arrays& outputs) const {
    try {
      work(inputs, outputs);
    } catch (const std::exception& error) {
      for (size_t i = 0; i < outputs.size(); ++i) {
        if (!in_place_of[i]) {
          std::memset(outputs[i].data<char>(), 0, outputs[i].nbytes());
        }
      }
      keep_failure(failure_text(error));
    }
  }
};

class CpuPrimitive : public mx::Primitive {
 public:
  CpuPrimitive(
      mx::Stream stream,
      const char* name,
      std::vector<std::optional<int>> in_place_of,
      Work work)
      : Primitive(stream),
        name_(name),
        body_(std::make_shared<const Body>(
            Body{std::move(in_place_of), std::move(work)})) {}

  void eval_cpu(const Arrays& inputs, Arrays& outputs) override {
    if (stopped.load(std::memory_order_relaxed)) {
      throw Error("the process is ending");
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (auto input = body_->in_place_of[i]) {
        outputs[i].copy_shared_buffer(inputs[*input]);
      } else {
        allocate_result(outputs[i], stream());
      }
    }
    auto& encoder = mx::cpu::get_command_encoder(stream());
    encoder.dispatch([body = body_,
                      in = weak(inputs),
                      out = weak(outputs)]() mutable { body->run(in, out); });
  }

  void eval_gpu(const Arrays&, Arrays&) override {
    throw Error(std::string(name_) + " is a CPU op but its stream is a GPU's");
  }

  const char* name() const override {
    return name_;
  }

 private:
  static Arrays weak(const Arrays& arrays) {
    Arrays copies;
    copies.reserve(arrays.size());
    for (const auto& a : arrays) {
      copies.push_back(mx::array::unsafe_weak_copy(a));
    }
    return copies;
  }

  const char* name_;
  // Shared with what is dispatched, which may outlive this.
  std::shared_ptr<const Body> body_;
};

// Whether `x` is sure to be row-contiguous once it is evaluated.
bool is_dense(const mx::array& x) {
  return x.has_primitive()
      ? dynamic_cast<CpuPrimitive*>(&x.primitive()) != nullptr
      : x.status() != mx::array::unscheduled && x.flags().row_contiguous;
}

} // namespace

SideStream::SideStream()
    : stream_(mx::new_stream(mx::Device::cpu)),
      failure_(std::make_unique<std::string>()) {
  mx::cpu::get_command_encoder(stream_).dispatch([failure = failure_.get()] {
    keep_tiles();
    side_failure = failure;
  });
}

std::string SideStream::take_failure() {
  mx::synchronize(stream_);
  return std::exchange(*failure_, {});
}

uint64_t failed_ops() {
  auto& all = failures();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.count;
}

std::string last_failure() {
  auto& all = failures();
  std::lock_guard<std::mutex> lock(all.mutex);
  return all.last;
}

void stop_ops() {
  stopped.store(true);
}

Arrays make_ops(
    const char* name,
    std::vector<Output> outputs,
    Arrays inputs,
    Work work,
    mx::Stream s) {
  std::vector<mx::Shape> shapes;
  std::vector<mx::Dtype> dtypes;
  std::vector<std::optional<int>> in_place_of;
  for (auto& output : outputs) {
    shapes.push_back(std::move(output.shape));
    dtypes.push_back(output.dtype);
    in_place_of.push_back(output.in_place_of);
  }
  auto primitive = std::make_shared<CpuPrimitive>(
      s, name, std::move(in_place_of), std::move(work));
  return mx::array::make_arrays(
      std::move(shapes), dtypes, primitive, std::move(inputs));
}

mx::array make_op(
    const char* name,
    Output output,
    Arrays inputs,
    Work work,
    mx::Stream s) {
  return make_ops(
      name, {std::move(output)}, std::move(inputs), std::move(work), s)[0];
}

mx::array dense(const mx::array& x, mx::Stream s) {
  return is_dense(x) ? x : mx::contiguous(x, false, s);
}

mx::array as_float(const mx::array& x, mx::Stream s) {
  return x.dtype() == mx::float32 ? dense(x, s) : cast(x, mx::float32, s);
}

mx::array as_ids(const mx::array& x, mx::Stream s) {
  return dense(x.dtype() == mx::int32 ? x : mx::astype(x, mx::int32, s), s);
}

mx::array dense_rows(const mx::array& x, mx::Stream s) {
  bool has_rows = x.has_primitive()
      ? std::string_view(x.primitive().name()) == "Split" &&
          is_dense(x.inputs()[0])
      : x.status() != mx::array::unscheduled && x.strides(-1) == 1;
  return has_rows ? x : dense(x, s);
}

mx::array as_rows(const mx::array& x, mx::Stream s) {
  return x.dtype() == mx::float32 ? dense_rows(x, s) : as_float(x, s);
}

Storage storage_of(mx::Dtype dtype) {
  if (dtype == mx::float32) {
    return Storage::f32;
  }
  if (dtype == mx::float16) {
    return Storage::f16;
  }
  if (dtype == mx::bfloat16) {
    return Storage::bf16;
  }
  throw Error("expected a float32, float16 or bfloat16 array");
}

const float* floats_of(const mx::array& x) {
  Storage storage = storage_of(x);
  if (storage == Storage::f32) {
    return x.data<float>();
  }
  float* floats = scratch<ConvertedInput>(x.size());
  for_parts(x.size(), 1 << 14, [&](int64_t begin, int count) {
    simd().unpack[static_cast<int>(storage)](
        x.data<char>() + begin * storage_bytes(storage), count, floats + begin);
  });
  return floats;
}

int row_count(const mx::array& x) {
  return x.size() == 0 ? 0 : static_cast<int>(x.size() / x.shape(-1));
}

} // namespace nightingale::cpu
