"""Synthetic S3Gen weights: the flow from speech tokens to mel, and the vocoder.

The flow gives mels with the mean and spread of speech, the vocoder audio that rarely clips, and F0
varies between silence and 400 Hz, so that an error in any part changes the output. Centred rows
ignore the mean that all channels share: without them frames would become more alike with every
layer, and attention uniform.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from .weights import Tensors, Weights, conv_weights, linear_weights, norm_weights

MELS = 80
CODES = 6561
X_VECTOR = 192
HEAD = 64
SPECTRUM = 18  # real and imaginary parts of 9 bins
HARMONICS = 9
UPSAMPLING = ((8, 16), (5, 11), (3, 7))  # rate and kernel
SOURCE_KERNELS = (30, 6, 1)
RESIDUAL_KERNELS = (3, 7, 11)
SOURCE_RESIDUAL_KERNELS = (7, 7, 11)
DILATIONS = 3

WEIGHT_NORM = ("parametrizations.weight.original0", "parametrizations.weight.original1")
LEGACY_WEIGHT_NORM = ("weight_g", "weight_v")


@dataclass(frozen=True)
class S3GenSize:
    encoder: int  # width, a multiple of the head size, 64
    encoder_ffn: int
    encoder_layers: int
    up_encoder_layers: int
    estimator: int  # channels
    estimator_heads: int
    transformer_blocks: int  # at each level
    mid_blocks: int
    vocoder: int  # channels before upsampling, which halves them three times
    f0: int


S3GEN_SIZES = {
    "small": S3GenSize(
        encoder=128,
        encoder_ffn=256,
        encoder_layers=2,
        up_encoder_layers=2,
        estimator=64,
        estimator_heads=2,
        transformer_blocks=2,
        mid_blocks=2,
        vocoder=64,
        f0=32,
    ),
    "full": S3GenSize(
        encoder=512,
        encoder_ffn=2048,
        encoder_layers=6,
        up_encoder_layers=4,
        estimator=256,
        estimator_heads=8,
        transformer_blocks=4,
        mid_blocks=12,
        vocoder=512,
        f0=512,
    ),
}


def s3gen_weights(size: S3GenSize, meanflow: bool = False) -> Tensors:
    """The tensors of flow and vocoder by official name; `meanflow` adds Turbo's time mixer."""
    return {**_flow(size, meanflow), **_vocoder(size)}


def with_legacy_weight_norm(tensors: Tensors) -> Tensors:
    """The same values, the weight-norm pairs under the names of older files."""
    renamed: Tensors = {}
    for name, weights in tensors.items():
        old = name
        for new_end, old_end in zip(WEIGHT_NORM, LEGACY_WEIGHT_NORM, strict=True):
            old = old.replace(new_end, old_end)
        renamed[old] = weights if old == name else replace(weights, drawn_as=name)
    return renamed


def _flow(size: S3GenSize, meanflow: bool) -> Tensors:
    tensors = {
        "flow.input_embedding.weight": Weights((CODES, size.encoder), 1.0),
        # The x-vector is scaled to length 1 before this.
        **linear_weights("flow.spk_embed_affine_layer", X_VECTOR, MELS, X_VECTOR**0.5),
        **_encoder("flow.encoder.", size),
        **linear_weights("flow.encoder_proj", size.encoder, MELS, bias=0.5),
        **_estimator("flow.decoder.estimator.", size),
    }
    if meanflow:
        times = 4 * size.estimator
        name = "flow.decoder.estimator.time_embed_mixer.weight"
        tensors[name] = Weights((times, 2 * times), (2 * times) ** -0.5)
    return tensors


def _encoder(name: str, size: S3GenSize) -> Tensors:
    width = size.encoder
    tensors: Tensors = {}
    for embed in ("embed", "up_embed"):
        tensors |= linear_weights(f"{name}{embed}.out.0", width, width)
        tensors |= norm_weights(f"{name}{embed}.out.1", width)
    tensors |= conv_weights(name + "pre_lookahead_layer.conv1", width, width, 4)
    tensors |= conv_weights(name + "pre_lookahead_layer.conv2", width, width, 3)
    for layer in range(size.encoder_layers):
        tensors |= _encoder_layer(f"{name}encoders.{layer}.", size, size.encoder_layers)
    tensors |= conv_weights(name + "up_layer.conv", width, width, 5)
    for layer in range(size.up_encoder_layers):
        tensors |= _encoder_layer(f"{name}up_encoders.{layer}.", size, size.up_encoder_layers)
    return tensors | norm_weights(name + "after_norm", width)


def _encoder_layer(name: str, size: S3GenSize, layers: int) -> Tensors:
    width, ffn = size.encoder, size.encoder_ffn
    # The residual stream starts at sqrt(width): a layer that matters must be of that size.
    branch = (width / (2 * layers)) ** 0.5
    attention = name + "self_attn."
    return {
        **linear_weights(attention + "linear_q", width, width, 1.3),
        **linear_weights(attention + "linear_k", width, width, 1.3),
        **linear_weights(attention + "linear_v", width, width),
        **linear_weights(attention + "linear_out", width, width, 2 * branch),
        **linear_weights(attention + "linear_pos", width, width, bias=None),
        attention + "pos_bias_u": Weights((width // HEAD, HEAD), 0.5),
        attention + "pos_bias_v": Weights((width // HEAD, HEAD), 0.5),
        **linear_weights(name + "feed_forward.w_1", width, ffn, 1.5),
        **linear_weights(name + "feed_forward.w_2", ffn, width, branch, centred=1),
        **norm_weights(name + "norm_ff", width),
        **norm_weights(name + "norm_mha", width),
    }


def _estimator(name: str, size: S3GenSize) -> Tensors:
    channels, times = size.estimator, 4 * size.estimator

    def level(block: str, inputs: int) -> Tensors:
        tensors = _time_resnet(f"{name}{block}.0.", inputs, channels, times)
        for i in range(size.transformer_blocks):
            inner = HEAD * size.estimator_heads
            tensors |= _transformer_block(f"{name}{block}.1.{i}.", channels, inner)
        return tensors

    tensors = linear_weights(name + "time_mlp.linear_1", 4 * MELS, times, 1.5)
    tensors |= linear_weights(name + "time_mlp.linear_2", times, times, 2.0)
    tensors |= level("down_blocks.0", 4 * MELS)
    tensors |= conv_weights(name + "down_blocks.0.2", channels, channels, 3)
    for block in range(size.mid_blocks):
        tensors |= level(f"mid_blocks.{block}", channels)
    tensors |= level("up_blocks.0", 2 * channels)
    tensors |= conv_weights(name + "up_blocks.0.2", channels, channels, 3)
    tensors |= _causal_block(name + "final_block.", channels, channels)
    return tensors | {
        name + "final_proj.weight": Weights((MELS, channels, 1), 2.8 * channels**-0.5, centred=1),
        name + "final_proj.bias": Weights((MELS,), 0.5, mean=-5.0),
    }


def _time_resnet(name: str, inputs: int, channels: int, times: int) -> Tensors:
    # Of the four mels side by side at the entrance, each has a mean of its own.
    parts = 4 if inputs == 4 * MELS else 1
    return {
        **linear_weights(name + "mlp.1", times, channels, 0.5),
        **_causal_block(name + "block1.", inputs, channels, parts),
        **_causal_block(name + "block2.", channels, channels),
        **conv_weights(name + "res_conv", inputs, channels, 1, 0.85, parts),
    }


def _causal_block(name: str, inputs: int, channels: int, parts: int = 1) -> Tensors:
    return {
        **conv_weights(name + "block.0", inputs, channels, 3, centred=parts),
        **norm_weights(name + "block.2", channels),
    }


def _transformer_block(name: str, channels: int, inner: int) -> Tensors:
    return {
        **norm_weights(name + "norm1", channels),
        **linear_weights(name + "attn1.to_q", channels, inner, 2.0, bias=None),
        **linear_weights(name + "attn1.to_k", channels, inner, 2.0, bias=None),
        **linear_weights(name + "attn1.to_v", channels, inner, bias=None),
        **linear_weights(name + "attn1.to_out.0", inner, channels, 0.35),
        **norm_weights(name + "norm3", channels),
        **linear_weights(name + "ff.net.0.proj", channels, 4 * channels, 1.5),
        **linear_weights(name + "ff.net.2", 4 * channels, channels, 0.5, centred=1),
    }


def _vocoder(size: S3GenSize) -> Tensors:
    name, channels = "mel2wav.", size.vocoder
    tensors = {
        name + "m_source.l_linear.weight": Weights((1, HARMONICS), 0.6),
        name + "m_source.l_linear.bias": Weights((1,), 0.05),
        **_f0_predictor(name + "f0_predictor.", size.f0),
        **_normed_conv(name + "conv_pre", MELS, channels, 7, 0.5, centred=1),
    }
    for stage, (rate, kernel) in enumerate(UPSAMPLING):
        # A transposed convolution has a norm for each input channel.
        up, halved = f"{name}ups.{stage}.", channels // 2
        tensors |= _weight_norm(up, (channels, halved, kernel), rate**0.5)
        tensors[up + "bias"] = Weights((halved,), 0.1)
        channels = halved
        source = f"{name}source_downs.{stage}"
        tensors |= conv_weights(source, SPECTRUM, channels, SOURCE_KERNELS[stage], 0.5)
        residual = f"{name}source_resblocks.{stage}."
        tensors |= _residual_block(residual, channels, SOURCE_RESIDUAL_KERNELS[stage])
        for i, residual_kernel in enumerate(RESIDUAL_KERNELS):
            residual = f"{name}resblocks.{len(RESIDUAL_KERNELS) * stage + i}."
            tensors |= _residual_block(residual, channels, residual_kernel)
    tensors |= _normed_conv(name + "conv_post", channels, SPECTRUM, 7, 0.4)
    # Nine log-magnitudes, which set how loud the sound is, then nine phases about zero.
    tensors[name + "conv_post.bias"] = Weights((SPECTRUM,), 0.2, -0.2, SPECTRUM // 2)
    return tensors


def _residual_block(name: str, channels: int, kernel: int) -> Tensors:
    tensors: Tensors = {}
    for i in range(DILATIONS):
        for half in (1, 2):
            conv = f"{name}convs{half}.{i}"
            tensors |= _normed_conv(conv, channels, channels, kernel, 0.4)
            tensors[f"{name}activations{half}.{i}.alpha"] = Weights((channels,), 0.2, mean=1.0)
    return tensors


def _f0_predictor(name: str, channels: int) -> Tensors:
    """F0 varies about zero for any seed: all layers ignore means, the first also constants."""
    conv = name + "condnet."
    tensors = _normed_conv(conv + "0", MELS, channels, 3, 0.3, centred=MELS)
    for layer in range(1, 5):
        tensors |= _normed_conv(f"{conv}{2 * layer}", channels, channels, 3, 1.1, centred=1)
    return tensors | {
        name + "classifier.weight": Weights((1, channels), 260 * channels**-0.5, centred=1),
        name + "classifier.bias": Weights((1,), 5.0),
    }


def _normed_conv(
    name: str, inputs: int, outputs: int, kernel: int, norm: float, centred: int = 0
) -> Tensors:
    return {
        name + ".bias": Weights((outputs,), 0.1),
        **_weight_norm(name + ".", (outputs, inputs, kernel), norm, centred),
    }


def _weight_norm(name: str, shape: tuple[int, int, int], norm: float, centred: int = 0) -> Tensors:
    """The norm of each row and the row's direction, whose own length of about 2 is of no use."""
    length, direction = WEIGHT_NORM
    row = shape[1] * shape[2]
    return {
        name + length: Weights((shape[0], 1, 1), 0.1 * norm, mean=norm),
        name + direction: Weights(shape, 2 * row**-0.5, centred=centred),
    }
