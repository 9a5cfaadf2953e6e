// The ops that every backend has, in its own namespace: included by cpu/ops.h
// and graph/ops.h. The headers in nightingale/ops/ say what each of them does.

mx::array linear(
    const mx::array& x,
    const mx::array& w,
    const ops::Epilogue& epilogue,
    mx::Stream s);

mx::array norm_linear(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& w,
    mx::Stream s);
mx::array norm_swiglu(
    const mx::array& x,
    const mx::array& norm,
    float eps,
    const mx::array& gate_up,
    mx::Stream s);

mx::array embedding(const mx::array& table, const mx::array& ids, mx::Stream s);

mx::array
rms_norm(const mx::array& x, const mx::array& w, float eps, mx::Stream s);
mx::array layer_norm(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    mx::Dtype dtype,
    mx::Stream s);
mx::array norm_mish(
    const mx::array& x,
    const mx::array& w,
    const mx::array& b,
    float eps,
    const std::optional<mx::array>& shift,
    mx::Dtype dtype,
    mx::Stream s);

mx::array
activate(const mx::array& x, ops::Activation activation, mx::Stream s);
mx::array leaky_relu(const mx::array& x, float slope, mx::Stream s);
mx::array snake(const mx::array& x, const mx::array& alpha, mx::Stream s);
mx::array cast(const mx::array& x, mx::Dtype dtype, mx::Stream s);
mx::array swiglu(const mx::array& gate_up, mx::Stream s);

mx::array rotary(
    const mx::array& x,
    const mx::array& frequencies,
    int past,
    mx::Stream s);

mx::array make_cache(const mx::Shape& shape, mx::Dtype dtype, mx::Stream s);
mx::array fork_cache(
    const mx::array& prefix,
    int length,
    int batch,
    int capacity,
    mx::Stream s);
mx::array
write_heads(const mx::array& cache, const mx::array& x, int past, mx::Stream s);
mx::array cached_attention(
    const mx::array& q,
    const mx::array& keys,
    const mx::array& values,
    int past,
    mx::Stream s);
mx::array attention_weights(
    const mx::array& q,
    const mx::array& keys,
    int past,
    int head,
    int rows,
    int begin,
    int count,
    mx::Stream s);
ops::SelfAttention self_attention(
    const mx::array& qkv,
    const mx::array& frequencies,
    const mx::array& keys,
    const mx::array& values,
    int past,
    const ops::AttentionWatch& watch,
    mx::Stream s);
mx::array full_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    int heads,
    mx::Stream s);
mx::array relative_attention(
    const mx::array& q,
    const mx::array& k,
    const mx::array& v,
    const mx::array& positions,
    const mx::array& content_bias,
    const mx::array& position_bias,
    int heads,
    mx::Stream s);

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

mx::array lstm(
    const mx::array& x,
    const mx::array& w_ih,
    const mx::array& w_hh,
    const mx::array& bias,
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
