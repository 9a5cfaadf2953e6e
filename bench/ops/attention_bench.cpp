#include "arrays.h"
#include "mlx/ops.h"
#include "mlx/transforms.h"
#include "nightingale/ops/attention.h"
#include "nightingale/ops/frame_attention.h"
#include "nightingale/ops/quantized_cache.h"
#include "peak.h"

namespace nightingale::bench {

namespace {

constexpr int kRows = 2, kHeads = 16, kHeadDim = 64, kHidden = 1024;
constexpr int kCapacity = 1200;

// A score and a weighted value for every query-key pair.
double attention_flops(double pairs, int channels) {
  return 4.0 * pairs * channels;
}

// Quantized where `bits` is not 0.
Cold cold_caches(mx::Dtype dtype, int bits = 0) {
  auto [shape, type] =
      ops::cache_shape({kRows, kHeads, kCapacity, kHeadDim}, dtype, bits);
  return Cold(shape, type);
}

// One step of a guidance pair over `positions` that are filled.
void cached_attention_decode(
    benchmark::State& state,
    mx::Dtype dtype,
    int bits) {
  int positions = state.range(0);
  auto q = warm({kRows, 1, kHidden});
  Cold caches = cold_caches(dtype, bits);
  double vector = bits ? 4.0 * ops::quantized_words(kHeadDim, bits)
                       : double(kHeadDim * mx::size_of(dtype));
  Work work{
      2.0 * kRows * positions * kHeads * vector,
      attention_flops(double(kRows) * positions, kHidden)};
  run(state, work, [&] {
    auto keys = caches.next(), values = caches.next();
    return ops::cached_attention(
        {q, positions - 1}, {keys, values}, cpu_stream());
  });
}

void cached_attention_prefill(benchmark::State& state, mx::Dtype dtype) {
  int length = state.range(0);
  auto q = warm({kRows, length, kHidden});
  Cold caches = cold_caches(dtype);
  double elements = double(kRows) * length * kHidden;
  Work work{
      elements * (2 * sizeof(float) + 2 * mx::size_of(dtype)),
      attention_flops(kRows * length * (length + 1) / 2.0, kHidden)};
  run(state, work, [&] {
    auto keys = caches.next(), values = caches.next();
    return ops::cached_attention({q, 0}, {keys, values}, cpu_stream());
  });
}

void write_heads(benchmark::State& state, mx::Dtype dtype) {
  int length = state.range(0);
  auto x = warm({kRows, length, kHidden});
  Cold caches = cold_caches(dtype);
  double elements = double(kRows) * length * kHidden;
  Work work{elements * (sizeof(float) + mx::size_of(dtype)), 0.0};
  run(state, work, [&] {
    return ops::write_heads(caches.next(), x, 500, cpu_stream());
  });
}

// Every frame sees every frame, as in S3Gen: 8 heads of 64, queries, keys and
// values side by side.
void full_attention(benchmark::State& state, mx::Dtype dtype) {
  constexpr int heads = 8, channels = 512;
  int length = state.range(0);
  auto parts =
      mx::split(warm({2, length, 3 * channels}, dtype), 3, -1, cpu_stream());
  mx::eval(parts);
  Work work{
      2.0 * length * channels * 4 * mx::size_of(dtype),
      attention_flops(2.0 * length * length, channels)};
  run(state, work, [&] {
    return ops::full_attention(
        {parts[0], parts[1], parts[2], heads}, cpu_stream());
  });
}

// As in the encoder: a third product, of queries and distances.
void relative_attention(benchmark::State& state) {
  constexpr int heads = 8, channels = 512;
  int length = state.range(0);
  auto qkv = warm({length, 3 * channels}), bias = warm({channels});
  auto positions = ops::project_positions(
      warm({2 * length - 1, channels}),
      {warm({channels, channels}), 1, heads},
      cpu_stream())[0];
  mx::eval(positions);
  Work work{
      1.0 * length * channels * 6 * sizeof(float),
      1.5 * attention_flops(1.0 * length * length, channels)};
  run(state, work, [&] {
    return ops::relative_frame_attention(
        qkv, {positions, bias, bias}, heads, cpu_stream());
  });
}

BENCHMARK_CAPTURE(cached_attention_decode, f32, mx::float32, 0)
    ->Arg(250)
    ->Arg(500)
    ->Arg(1000)
    ->UseRealTime();
BENCHMARK_CAPTURE(cached_attention_decode, f16, mx::float16, 0)
    ->Arg(250)
    ->Arg(500)
    ->Arg(1000)
    ->UseRealTime();
BENCHMARK_CAPTURE(cached_attention_decode, bf16, mx::bfloat16, 0)
    ->Arg(250)
    ->Arg(500)
    ->Arg(1000)
    ->UseRealTime();
BENCHMARK_CAPTURE(cached_attention_decode, int8, mx::float32, 8)
    ->Arg(250)
    ->Arg(500)
    ->Arg(1000)
    ->UseRealTime();
BENCHMARK_CAPTURE(cached_attention_decode, int4, mx::float32, 4)
    ->Arg(250)
    ->Arg(500)
    ->Arg(1000)
    ->UseRealTime();
BENCHMARK_CAPTURE(cached_attention_prefill, f32, mx::float32)
    ->Arg(200)
    ->UseRealTime();
BENCHMARK_CAPTURE(cached_attention_prefill, f16, mx::float16)
    ->Arg(200)
    ->UseRealTime();
BENCHMARK_CAPTURE(write_heads, f32, mx::float32)
    ->Arg(1)
    ->Arg(200)
    ->UseRealTime();
BENCHMARK_CAPTURE(write_heads, f16, mx::float16)
    ->Arg(1)
    ->Arg(200)
    ->UseRealTime();
BENCHMARK_CAPTURE(full_attention, f32, mx::float32)
    ->Arg(100)
    ->Arg(700)
    ->Arg(1500)
    ->Arg(2500)
    ->UseRealTime();
BENCHMARK_CAPTURE(full_attention, bf16, mx::bfloat16)
    ->Arg(700)
    ->Arg(1500)
    ->Arg(2500)
    ->UseRealTime();
BENCHMARK(relative_attention)->Arg(350)->Arg(700)->UseRealTime();

} // namespace

} // namespace nightingale::bench
