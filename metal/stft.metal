// stft: the spectrum of every whole frame of 16 samples, 4 apart, under a Hann
// window: 9 real parts, then 9 imaginary ones. The samples are `before`,
// [split], then `x`, count in all; before the first and behind the last of the
// whole, 8 of them are mirrored, if `ends` has bit 0, or bit 1. basis: [16, 18]
// → y: [frames, 18]; kept: the samples that the next frame begins with, or a
// zero at the end of the whole.
// Reference: ops::centred_stft, by mx::take, mx::concatenate and reference::stft.
//
// inputs: x before basis extent range
// outputs: y kept

METAL_FUNC float sample_at(
    const device float* before, const device float* x, int split, int count, int at) {
  if (at < 0) at = -at;
  if (at >= count) at = 2 * (count - 1) - at;
  return at < split ? before[at] : x[at - split];
}

//: kernel
constexpr int CHUNK = 1024, BINS = 18, SIZE = 16, HOP = 4; // elements of a group
int split = extent[0], count = extent[1], ends = range[0], frames = range[1];
int mirrored = (ends & 1) != 0 ? SIZE / 2 : 0;
int group = int(threadgroup_position_in_grid.x), id = int(thread_index_in_threadgroup);
int begin = group * CHUNK, end = min(begin + CHUNK, frames * BINS);
for (int i = begin + id; i < end; i += THREADS) {
  int frame = i / BINS, bin = i - frame * BINS, first = frame * HOP - mirrored;
  float sum = 0.0f;
  for (int n = 0; n < SIZE; ++n)
    sum = fma(sample_at(before, x, split, count, first + n), basis[n * BINS + bin], sum);
  y[i] = sum;
}
if ((ends & 2) == 0 && group == 0) {
  int from = frames * HOP - mirrored;
  for (int i = id; from + i < count; i += THREADS)
    kept[i] = sample_at(before, x, split, count, from + i);
} else if (group + id == 0) {
  kept[0] = 0.0f;
}
