#include "nightingale/backends/gpu/streaming_conv.h"

#include <algorithm>
#include <bit>

#include "nightingale/backends/gpu/row_parts.h"

namespace nightingale::gpu {

namespace {

constexpr size_t kParts = 3;

// One launch over the elements of the longest part: those of the first `count`
// rows are added up, the others go where they are kept. A slope says that the
// mean is taken, and leaky_relu of it.
ops::Merged merge(
    const std::vector<ops::FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  int columns = parts[0].x.shape(-1), size = count * columns, longest = size;
  std::vector<mx::array> inputs, places;
  std::vector<KernelOutput> outputs{{{1, count, columns}, mx::float32}};
  for (size_t i = 0; i < kParts; ++i) {
    bool there = i < parts.size();
    auto part = readable(parts[there ? i : 0], s);
    int split = part.before ? part.before->size() : 0;
    int elements = part.count() * columns, rest = part.count() - count;
    longest = std::max(longest, elements);
    inputs.push_back(part.x);
    inputs.push_back(part.before.value_or(part.x));
    places.push_back(pair(split, elements));
    auto kept = there && rest > 0 ? mx::Shape{1, rest, columns} : mx::Shape{1};
    outputs.push_back({kept, mx::float32});
  }
  inputs.push_back(pair(size, longest));
  inputs.insert(inputs.end(), places.begin(), places.end());
  inputs.push_back(pair(parts.size(), std::bit_cast<int>(slope)));
  auto out = launch(
      {.kernel = "merge",
       .inputs = std::move(inputs),
       .outputs = std::move(outputs),
       .constants = {{"WIDTH", width_of(columns)}},
       .groups = {chunks_of(longest), 1, 1},
       .threads = kChunkThreads},
      s);
  ops::Merged merged{out[0], {}};
  for (size_t i = 0; i < parts.size(); ++i) {
    bool rest = parts[i].count() > count;
    merged.kept.push_back(rest ? std::optional(out[i + 1]) : std::nullopt);
  }
  return merged;
}

} // namespace

ops::Merged
add_rows(const std::vector<ops::FrameSpan>& parts, int count, mx::Stream s) {
  return merge(parts, count, 0, s);
}

ops::Merged mean_rows(
    const std::vector<ops::FrameSpan>& parts,
    int count,
    float slope,
    mx::Stream s) {
  return merge(parts, count, slope, s);
}

} // namespace nightingale::gpu
