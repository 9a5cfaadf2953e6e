#include "nightingale/backends/gpu/replay.h"

#include <algorithm>
#include <future>
#include <stdexcept>

#include "emulated_gpu.h"
#include "mlx/allocator.h"
#include "mlx/backend/cpu/encoder.h"
#include "mlx/ops.h"
#include "mlx/primitives.h"
#include "mlx/transforms.h"
#include "nightingale/backends/gpu/attention.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/linear.h"
#include "nightingale/backends/reference/ops.h"
#include "nightingale/ops/decoder.h"
#include "nightingale/ops/quantized_cache.h"
#include "nightingale/ops/rotary.h"
#include "ops/arrays.h"

using namespace nightingale;
using namespace nightingale::testing;

namespace {

using Arrays = std::vector<mx::array>;

constexpr float kEps = 1e-5f;

struct Chain {
  mx::Stream s = kernel_stream();
  mx::array norm = noise_array({64}, 1);
  ops::Matrix up{noise_array({96, 64}, 2)}, down{noise_array({64, 96}, 3)};

  // x, and what is made on the way.
  Arrays of(const mx::array& x) const {
    auto wide = gpu::norm_linear(x, {norm, kEps}, up, {}, s);
    return {gpu::linear(wide, down, {.residual = x}, s), wide};
  }
};

// Two layers that decode, and a sum of what they have given so far.
struct Decoder {
  static constexpr int kHeads = 2, kHidden = 64 * kHeads, kFfn = 192;
  mx::Stream s = kernel_stream();
  std::optional<mx::array> frequencies = ops::rotary_frequencies(64, {});
  std::vector<ops::DecoderLayer> layers;
  std::vector<ops::LayerCache> caches;
  int past = 8; // the text that is watched, and more

  explicit Decoder(int bits, int capacity = 300) {
    auto matrix = [&](int rows, int columns, int seed) {
      auto w =
          mx::multiply(noise_array({rows, columns}, seed), mx::array(0.1f));
      mx::eval(w);
      return bits ? quantized_for_kernels(w, bits) : ops::Matrix(w);
    };
    auto [shape, dtype] =
        ops::cache_shape({2, kHeads, capacity, 64}, mx::float32, bits);
    for (int i = 0; i < 2; ++i) {
      int seed = 10 * i;
      layers.push_back(
          {{noise_array({kHidden}, ++seed), kEps},
           matrix(3 * kHidden, kHidden, ++seed),
           matrix(kHidden, kHidden, ++seed),
           {noise_array({kHidden}, ++seed), kEps},
           matrix(2 * kFfn, kHidden, ++seed),
           matrix(kHidden, kFfn, ++seed)});
      caches.push_back(
          {mx::zeros(shape, dtype, s), mx::zeros(shape, dtype, s)});
    }
  }

  // The same with what a GPT-2 has and a Llama has not.
  static Decoder gpt2(int bits) {
    Decoder decoder(bits);
    decoder.frequencies = std::nullopt;
    int seed = 50;
    auto vector = [&](int size) { return noise_array({size}, ++seed); };
    for (auto& layer : decoder.layers) {
      layer.attention_norm.b = vector(kHidden);
      layer.ffn_norm.b = vector(kHidden);
      for (auto* each : {&layer.qkv, &layer.out, &layer.up, &layer.down}) {
        each->b = vector(each->w.rows());
      }
      auto w =
          mx::multiply(noise_array({kFfn, kHidden}, ++seed), mx::array(0.1f));
      mx::eval(w);
      layer.up = {
          bits ? quantized_for_kernels(w, bits) : ops::Matrix(w), vector(kFfn)};
      layer.activation = ops::Activation::gelu_tanh;
    }
    return decoder;
  }

  // Where it is not to repeat anything, its caches forget that they could.
  Arrays step(const mx::array& x, bool anew) {
    std::vector<ops::DecoderRun> runs;
    for (int i = 0; i < 2; ++i) {
      std::vector<int> heads = i == 0 ? std::vector{1} : std::vector{1, 0};
      runs.push_back({&layers[i], &caches[i], {heads, 1, 0, 5}});
      if (anew) {
        caches[i].step = nullptr;
      }
    }
    auto made = ops::decoder_layers({x, runs, frequencies, past}, s);
    ++past;
    made.weights.insert(made.weights.begin(), made.x);
    return made.weights;
  }
};

// x + 1, computed later, as on a GPU: by a thread that first waits for `begin`
// and then notes whether `memory` is still referred to.
class Observer : public mx::UnaryPrimitive {
 public:
  struct Notes {
    std::promise<void> begin;
    std::weak_ptr<mx::array::Data> memory;
    bool referenced = false;
  };

  Observer(mx::Stream s, std::shared_ptr<Notes> notes)
      : UnaryPrimitive(s), notes_(std::move(notes)) {}

  void eval_cpu(const Arrays& inputs, mx::array& out) override {
    out.set_data(mx::allocator::malloc(out.nbytes()));
    const float* from = inputs[0].data<float>();
    float* to = out.data<float>();
    auto task = [from, to, size = out.size(), notes = notes_] {
      notes->begin.get_future().wait();
      notes->referenced = !notes->memory.expired();
      std::transform(
          from, from + size, to, [](float value) { return value + 1.0f; });
    };
    mx::cpu::get_command_encoder(stream()).dispatch(task);
  }
  void eval_gpu(const Arrays&, mx::array&) override {
    throw std::logic_error("runs on the CPU");
  }
  const char* name() const override {
    return "Observer";
  }

 private:
  std::shared_ptr<Notes> notes_;
};

} // namespace

TEST_CASE("a replay keeps the recording's constants until it has run") {
  auto s = mx::default_stream(mx::Device::cpu);
  auto notes = std::make_shared<Observer::Notes>();
  auto input = noise_array({64}, 1);
  std::optional<mx::array> result;
  {
    auto constant = mx::ones({64}, mx::float32, s);
    mx::eval(constant);
    mx::array observed(
        {64},
        mx::float32,
        std::make_shared<Observer>(s, notes),
        {constant, input});
    auto recording = gpu::Recording::of({input}, {observed});
    REQUIRE(recording);
    notes->memory = constant.data_shared_ptr();
    result = gpu::Recording::replay(recording, {input}, s)[0];
    mx::async_eval(*result);
  }
  // Whoever spoke is gone, with caches and weights; the step still has to run.
  CHECK_FALSE(notes->memory.expired());
  notes->begin.set_value();
  mx::eval(*result);
  mx::synchronize(s);
  CHECK(notes->referenced);
  CHECK(values(*result)[0] == 2.0f);
  // Only until it has run: the result alone keeps nothing.
  CHECK(notes->memory.expired());
}

TEST_CASE("a recording gives for other inputs what the graph would give") {
  Chain chain;
  auto first = noise_array({2, 1, 64}, 4);
  mx::eval(chain.of(first)); // kernels are evaluated at once the first time
  auto recording = gpu::Recording::of({first}, chain.of(first));
  REQUIRE(recording);
  for (int seed : {4, 5, 6}) {
    auto x = noise_array({2, 1, 64}, seed);
    auto again = gpu::Recording::replay(recording, {x}, chain.s);
    auto expected = chain.of(x);
    REQUIRE(again.size() == expected.size());
    for (size_t i = 0; i < again.size(); ++i) {
      CHECK(same_bits(again[i], expected[i]));
    }
  }
}

TEST_CASE("replays one after the other may all be waiting to run") {
  Chain chain;
  auto x = noise_array({2, 1, 64}, 4);
  mx::eval(chain.of(x));
  auto recording = gpu::Recording::of({x}, chain.of(x));
  auto again = x, expected = x;
  for (int i = 0; i < 20; ++i) {
    again = gpu::Recording::replay(recording, {again}, chain.s)[0];
    expected = chain.of(expected)[0];
  }
  CHECK(same_bits(again, expected));
}

TEST_CASE("there is nothing to record of what has been computed or given") {
  Chain chain;
  auto x = noise_array({2, 1, 64}, 4);
  mx::eval(chain.of(x));
  auto y = chain.of(x);
  CHECK(gpu::Recording::of({x}, y));
  CHECK_FALSE(gpu::Recording::of({x}, {x}));
  mx::eval(y);
  CHECK_FALSE(gpu::Recording::of({x}, y));
}

namespace {

// Two equal decoders, of which the second repeats nothing.
void check_repeats(Decoder repeats, Decoder builds) {
  EmulatedGpu as_gpu;
  // Positions from 120 on: the 128th takes another part, and new launches.
  repeats.past = builds.past = 120;
  auto x = noise_array({2, 1, Decoder::kHidden}, 7), y = x;
  for (int i = 0; i < 16; ++i) {
    CAPTURE(i);
    auto one = repeats.step(x, false), other = builds.step(y, true);
    REQUIRE(one.size() == 4);
    REQUIRE(other.size() == 4);
    if (i % 3 == 0) { // else they stay to be computed
      for (size_t n = 0; n < one.size(); ++n) {
        CHECK(same_bits(one[n], other[n]));
      }
    }
    x = one[0];
    y = other[0];
  }
  CHECK(same_bits(x, y));
  for (size_t i = 0; i < repeats.caches.size(); ++i) {
    mx::eval(*repeats.caches[i].written, *builds.caches[i].written);
    CHECK(same_bits(repeats.caches[i].keys, builds.caches[i].keys));
    CHECK(same_bits(repeats.caches[i].values, builds.caches[i].values));
  }
}

} // namespace

TEST_CASE(
    "decoding steps that are repeated give the bits of those built anew") {
  for (int bits : {0, 8, 4}) {
    CAPTURE(bits);
    check_repeats(Decoder(bits), Decoder(bits));
    check_repeats(Decoder::gpt2(bits), Decoder::gpt2(bits));
  }
}

TEST_CASE("a step whose input does not follow from the last waits for it") {
  Decoder repeats(0), builds(0);
  EmulatedGpu as_gpu;
  Arrays one, other;
  for (int i = 0; i < 8; ++i) {
    if (i == 3) {
      mx::eval(one); // caches that do not exist yet are not repeated
      mx::eval(other);
    }
    auto x = noise_array({2, 1, Decoder::kHidden}, 20 + i);
    one = repeats.step(x, false);
    other = builds.step(x, true);
  }
  CHECK(same_bits(one[0], other[0]));
}

TEST_CASE("repeated steps count their launches") {
  for (auto decoder : {Decoder(0), Decoder::gpt2(0)}) {
    EmulatedGpu as_gpu;
    auto x = noise_array({2, 1, Decoder::kHidden}, 7);
    for (int i = 0; i < 5; ++i) {
      long before = gpu::kernel_launches();
      mx::eval(decoder.step(x, false));
      CHECK(gpu::kernel_launches() - before == 10);
    }
  }
}

TEST_CASE(
    "decoding steps have little kernel text, which MLX hashes each time") {
  // Of a layer's five launches, were all headers whole and in their own words.
  constexpr long kWhole = 49'293;
  for (int bits : {0, 8, 4}) {
    CAPTURE(bits);
    Decoder decoder(bits);
    EmulatedGpu as_gpu;
    auto x = noise_array({2, 1, Decoder::kHidden}, 7);
    for (int i = 0; i < 5; ++i) { // built, then repeated
      long before = gpu::launch_count().source_bytes;
      mx::eval(decoder.step(x, false));
      long bytes = gpu::launch_count().source_bytes - before;
      CHECK(bytes / 2 <= 0.5 * kWhole);
    }
  }
}

TEST_CASE("cache_position tells positions and capacities apart") {
  auto s = kernel_stream();
  for (auto [past, capacity] : {std::pair{0, 5}, {4, 5}, {0, 9}, {8, 9}}) {
    auto place =
        mx::astype(gpu::cache_position(past, capacity, s), mx::float32, s);
    auto numbers = values(place);
    CHECK(numbers[0] == past);
    CHECK(numbers[1] == capacity);
  }
}
