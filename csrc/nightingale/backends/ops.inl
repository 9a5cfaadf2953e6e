// The ops that run on the backend of their stream. Whoever includes this
// defines both macros; the first argument is the number of the op's parameters
// before the stream.
//
// OP(parameters, name): in cpu/ and reference/; gpu/ has those for which a
// kernel of ours is faster than the graph of MLX ops in reference/.
// COMPOSITE(parameters, name): a sequence of other ops, in common.cpp and
// common_frames.cpp; a backend has those that it runs faster as one.

OP(2, activate)
OP(2, leaky_relu)
OP(2, snake)
OP(1, swiglu)
OP(2, cast)

OP(2, rms_norm)
OP(3, layer_norm)
OP(4, norm_mish)
COMPOSITE(3, linear_add_norm)

OP(3, linear)
OP(4, norm_linear)
OP(3, norm_swiglu)

COMPOSITE(2, feed_forward)
COMPOSITE(3, feed_forward_norm)

OP(2, embedding)
COMPOSITE(1, embed_token)

OP(3, rotary)

OP(2, lstm)

OP(2, make_cache)
OP(2, fork_cache)
OP(3, write_heads)
OP(2, cached_attention)
OP(3, attention_weights)
OP(1, self_attention)
COMPOSITE(3, projected_attention)

OP(1, full_attention)
OP(2, relative_attention)
COMPOSITE(3, frame_attention)
COMPOSITE(2, project_positions)
COMPOSITE(3, relative_frame_attention)

COMPOSITE(1, decoder_layers)
COMPOSITE(1, decoder_steps)
COMPOSITE(2, decoder_feed_forward)

OP(3, conv1d)
OP(3, conv_transpose1d)

COMPOSITE(2, make_filters)
COMPOSITE(3, streaming_conv1d)
COMPOSITE(3, streaming_conv_transpose1d)
COMPOSITE(2, add_frames)
COMPOSITE(3, mean_frames)

COMPOSITE(2, causal_conv)
COMPOSITE(3, normed_conv)
COMPOSITE(3, resnet)

OP(1, stft)
OP(1, polar_spectrum)
OP(2, istft)
COMPOSITE(2, centred_stft)
COMPOSITE(3, waveform)

OP(1, harmonic_source)
OP(3, normal_noise)

OP(3, euler_step)

OP(2, alignment_step)
OP(2, guide)
OP(4, filter_logits)
OP(2, draw_token)
OP(2, forbid_token)
OP(2, mark_seen)
COMPOSITE(3, choose_token)

#undef OP
#undef COMPOSITE
