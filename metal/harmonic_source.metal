// harmonic_source: the excitation of frames of 480 samples: tanh of nine
// harmonics where the pitch is above VOICED, and of noise, weighted and added
// up. f0: [frames] Hz; starts: [frames, 9] cycles; noise: [480 frames, 9]; w:
// [9]; b: [1] → y: [480 frames]
// Reference: reference::harmonic_source.
//
// inputs: f0 starts noise w b extent
// outputs: y

//: kernel
constexpr int CHUNK = 1024, HARMONICS = 9, SAMPLES = 480; // elements of a group
int size = extent[0];
int begin = int(threadgroup_position_in_grid.x) * CHUNK, end = min(begin + CHUNK, size);
for (int i = begin + int(thread_index_in_threadgroup); i < end; i += THREADS) {
  int frame = i / SAMPLES;
  float sample = float(i - frame * SAMPLES + 1), pitch = f0[frame], sum = 0.0f;
  bool voiced = pitch > 10.0f;
  float level = voiced ? 0.003f : 0.1f / 3.0f;
  for (int h = 0; h < HARMONICS; ++h) {
    float part = level * noise[i * HARMONICS + h];
    if (voiced) {
      float step = pitch * float(h + 1) / 24000.0f;
      float cycles = starts[frame * HARMONICS + h] + sample * step;
      part = fma(0.1f, precise::sin((cycles - floor(cycles)) * 6.2831853f), part);
    }
    sum = fma(part, w[h], sum);
  }
  y[i] = precise::tanh(sum + b[0]);
}
