// The ops that every backend has, in its own namespace: included by cpu/ops.h
// and graph/ops.h. The headers in nightingale/ops/ say what each of them does.

mx::array conv1d(
    const mx::array& x,
    const mx::array& w,
    const ops::Conv1d& shape,
    const ops::Epilogue& epilogue,
    mx::Stream s);
mx::array conv_transpose1d(
    const mx::array& x,
    const mx::array& w,
    const mx::array& bias,
    const ops::ConvTranspose1d& shape,
    mx::Stream s);

mx::array power_spectrum(const mx::array& frames, mx::Stream s);

mx::array stft(const mx::array& x, mx::Stream s);
mx::array polar_spectrum(const mx::array& x, mx::Stream s);
mx::array istft(const mx::array& x, bool first, bool last, mx::Stream s);

mx::array harmonic_source(
    const mx::array& f0,
    const mx::array& starts,
    const mx::array& noise,
    const mx::array& w,
    const mx::array& b,
    mx::Stream s);
mx::array normal_noise(
    uint64_t seed,
    DrawStage stage,
    uint32_t sentence,
    uint32_t first,
    int rows,
    int columns,
    mx::Stream s);

mx::array euler_step(
    const mx::array& x,
    const mx::array& velocity,
    float guidance,
    float dt,
    mx::Stream s);
mx::array
write_columns(const mx::array& buffer, const mx::array& x, mx::Stream s);

mx::array guide(const mx::array& logits, float weight, mx::Stream s);
mx::array filter_logits(
    const mx::array& logits,
    const mx::array& seen,
    const SpeechOptions& options,
    mx::Stream s);
mx::array draw_token(const mx::array& logits, DrawKey key, mx::Stream s);
mx::array forbid_token(const mx::array& logits, int token, mx::Stream s);
mx::array
mark_seen(const mx::array& seen, const mx::array& token, mx::Stream s);

ops::AlignmentStep alignment_step(
    const std::vector<mx::array>& weights,
    const mx::array& logits,
    const mx::array& token,
    const ops::AlignmentState& state,
    const ops::AlignmentLimits& limits,
    int stop_token,
    mx::Stream s);
