#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "mlx/ops.h"
#include "nightingale/backends/gpu/kernel.h"
#include "nightingale/backends/gpu/ops.h"

namespace nightingale::gpu {

namespace {

constexpr int kMostHeads = 4;
constexpr int kMostTokens = 1 << 14; // see the sums in sample.metal
constexpr int kRuleWords = 16;
// More threads would leave too few registers for a thread's tokens.
constexpr int kMostThreads = 512;
constexpr int kTokensPerThread = 16;

// 1 - top_p in units of 2^-49, which is exact; 0 only where top_p keeps all.
// The most likely of fewer than 2^14 tokens has a probability above 2^-14, so
// that a value slightly below 1 still keeps that token and no other.
uint64_t removable_of(float top_p) {
  return std::clamp(1.0 - top_p, 0.0, 1.0 - 0x1p-15) * 0x1p49;
}

// Sizes of a group for `count` tokens, the best first.
std::vector<int> group_sizes(int count) {
  std::vector<int> sizes{32};
  while (sizes.front() < kMostThreads &&
         sizes.front() * kTokensPerThread < count) {
    sizes.insert(sizes.begin(), 2 * sizes.front());
  }
  return sizes;
}

mx::array as_kernel_floats(const mx::array& x, mx::Stream s) {
  bool known = x.dtype() == mx::float32 || x.dtype() == mx::float16 ||
      x.dtype() == mx::bfloat16;
  return known ? x : mx::astype(x, mx::float32, s);
}

bool can_use_kernel(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    mx::Stream s) {
  return has_kernels(s) && logits.shape(1) < kMostTokens &&
      weights.size() <= kMostHeads &&
      (weights.empty() || weights[0].shape(0) <= 2);
}

} // namespace

mx::array pack_rules(const ops::TokenRules& rules) {
  auto bits = [](auto value) { return std::bit_cast<uint32_t>(value); };
  const auto& options = rules.options;
  DrawKey draws =
      stage_key({options.seed, DrawStage::speech_token, rules.sentence});
  uint64_t removable = removable_of(options.top_p);
  bool greedy = options.temperature < ops::kArgmaxTemperature;
  std::array<uint32_t, kRuleWords> words{
      bits(options.cfg_weight),
      bits(options.repetition_penalty),
      bits(greedy ? 0.0f : options.temperature),
      bits(options.min_p),
      bits(rules.limits.after_end),
      bits(rules.limits.first_stop),
      bits(rules.limits.first_repeat),
      bits(rules.text_tokens),
      bits(rules.stop_token),
      draws.low,
      draws.high,
      static_cast<uint32_t>(removable >> 18),
      static_cast<uint32_t>(removable & 0x3ffff),
      bits(options.top_k),
      rules.order == ops::SamplingOrder::penalty_last};
  return mx::array(words.data(), {kRuleWords}, mx::uint32);
}

ops::Sampler choose_token(
    const mx::array& logits,
    const std::vector<mx::array>& weights,
    ops::Sampler sampler,
    mx::Stream s) {
  if (!can_use_kernel(logits, weights, s)) {
    return backends::choose_token(logits, weights, std::move(sampler), s);
  }
  int heads = sampler.rules.analyser ? weights.size() : 0;
  uint32_t step[2] = {
      static_cast<uint32_t>(sampler.position),
      heads ? static_cast<uint32_t>(weights[0].shape(0)) : 0u};
  auto rows = as_kernel_floats(logits, s);
  std::vector<mx::array> inputs{
      rows,
      sampler.seen,
      sampler.token,
      sampler.packed_rules,
      mx::array(step, {2}, mx::uint32),
      sampler.alignment.marks,
      sampler.alignment.sums};
  for (int h = 0; h < kMostHeads; ++h) {
    inputs.push_back(
        heads ? mx::astype(weights[std::min(h, heads - 1)], mx::float32, s)
              : sampler.alignment.sums);
  }
  int count = logits.shape(1);
  auto out = launch(
      {.kernel = "sample",
       .inputs = std::move(inputs),
       .outputs =
           {{{1}, mx::int32},
            {{count}, mx::uint8},
            {{ops::kMarks}, mx::int32},
            {{ops::kSums}, mx::float32},
            {{2}, mx::int32}},
       .constants =
           {{"T", rows.dtype()},
            {"ROWS", logits.shape(0)},
            {"V", count},
            {"HEADS", heads}},
       .threads = group_sizes(count)},
      s);
  sampler.token = out[0];
  sampler.seen = out[1];
  sampler.alignment = {out[2], out[3]};
  sampler.report = out[4];
  ++sampler.position;
  return sampler;
}

} // namespace nightingale::gpu
