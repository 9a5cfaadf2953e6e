// waveform: samples from log-magnitudes and phases, frames of 16 samples that
// overlap by 12, each sample divided by the windows it stands under and kept
// within LIMIT. The frames are `before`, [split, 18], then `x`, count in all;
// hop h lies in frames h - first to h - first + 3, of which those beyond the
// ends are missing: `ends` has bit 0 for the first hop, bit 1 for the last.
// tables: [18, 16] bins to windowed samples, then [4, 4] gains by what is
// missing → y: [4 hops]; kept: the last rows, or a zero at the end.
// A group makes the bins of its frames once: four hops share each.
// Reference: reference::polar_spectrum, reference::istft and mx::clip.
//
// inputs: x before tables extent range
// outputs: y kept

//: kernel
constexpr int HOPS = 64, BINS = 18, HALF = 9, SIZE = 16, HOP = 4, OVERLAP = 4;
constexpr int FRAMES = HOPS + OVERLAP - 1, BASIS = BINS * SIZE;
threadgroup float bins[FRAMES * BINS];
threadgroup float basis[BASIS];
int split = extent[0], count = extent[1], ends = range[0], hops = range[1];
int group = int(threadgroup_position_in_grid.x), id = int(thread_index_in_threadgroup);
int first_hop = group * HOPS, first_frame = first_hop - (ends & 1);
for (int i = id; i < BASIS; i += THREADS) basis[i] = tables[i];
for (int i = id; i < FRAMES * HALF; i += THREADS) {
  int frame = i / HALF, bin = i - frame * HALF, row = first_frame + frame;
  float level = 0.0f, phase = 0.0f;
  if (row >= 0 && row < count) {
    int at = row * BINS + bin, split_at = split * BINS;
    float log_level = at < split_at ? before[at] : x[at - split_at];
    float angle = at < split_at ? before[at + HALF] : x[at - split_at + HALF];
    level = min(precise::exp(log_level), 100.0f);
    phase = precise::sin(angle);
  }
  bins[frame * BINS + bin] = level * precise::cos(phase);
  bins[frame * BINS + HALF + bin] = level * precise::sin(phase);
}
threadgroup_barrier(mem_flags::mem_threadgroup);
int samples = min(HOPS, hops - first_hop) * HOP;
for (int i = id; i < samples; i += THREADS) {
  int hop = i / HOP, n = i - hop * HOP;
  float sum = 0.0f;
  for (int block = 0; block < OVERLAP; ++block) {
    int frame = (hop + OVERLAP - 1 - block) * BINS;
    float sample = 0.0f;
    for (int k = 0; k < BINS; ++k)
      sample = fma(bins[frame + k], basis[k * SIZE + block * HOP + n], sample);
    sum += sample;
  }
  int missing = first_hop + hop == 0 ? ends & 1 : 0;
  if (first_hop + hop == hops - 1) missing |= ends & 2;
  float limit = as_type<float>(LIMIT), v = sum * tables[BASIS + missing * HOP + n];
  y[first_hop * HOP + i] = v < -limit ? -limit : v > limit ? limit : v;
}
if ((ends & 2) == 0 && group == 0) {
  int from = max(0, count - OVERLAP + 1) * BINS, split_at = split * BINS;
  for (int at = from + id; at < count * BINS; at += THREADS)
    kept[at - from] = at < split_at ? before[at] : x[at - split_at];
} else if (group + id == 0) {
  kept[0] = 0.0f;
}
