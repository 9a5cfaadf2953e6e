// phases: where in its cycle each of nine harmonics is before the first sample
// of every frame of 480. f0: [frames] Hz; phases: [9], in 2^-64 cycles →
// starts: [frames, 9] in cycles; after: [9], as phases.
// Whole numbers are added, so that no sum is rounded, however the frames are
// grouped: a float32 sum of cycles is off by 1e-3 after 16 s.
// Reference: cpu::frame_phases.
//
// inputs: f0 phases extent
// outputs: starts after

// 480 samples of `step` cycles. Steps are above 2^-40 wherever one hears them.
METAL_FUNC uint64_t frame_cycles(float step) {
  uint bits = as_type<uint>(step);
  int shift = int((bits >> 23) & 255u) - 86; // of the mantissa, to 2^-64
  uint64_t cycles = (bits & 0x7fffffu) | 0x800000u;
  if (shift <= -24 || shift >= 64) return 0;
  return 480 * (shift >= 0 ? cycles << shift : cycles >> -shift);
}

//: kernel
constexpr int HARMONICS = 9, CHUNK = 256;
threadgroup uint64_t cycles[CHUNK];
int frames = extent[0], harmonic = int(threadgroup_position_in_grid.x);
int id = int(thread_index_in_threadgroup);
uint64_t phase = phases[harmonic];
for (int begin = 0; begin < frames; begin += CHUNK) {
  int count = min(CHUNK, frames - begin);
  for (int i = id; i < count; i += THREADS)
    cycles[i] = frame_cycles(f0[begin + i] * float(harmonic + 1) / 24000.0f);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  for (int i = id; i < count; i += THREADS) {
    uint64_t start = phase;
    for (int j = 0; j < i; ++j) start += cycles[j];
    starts[(begin + i) * HARMONICS + harmonic] = float(uint(start >> 32)) * 2.3283064e-10f;
  }
  for (int j = 0; j < count; ++j) phase += cycles[j];
  threadgroup_barrier(mem_flags::mem_threadgroup);
}
if (id == 0) after[harmonic] = phase;
