"""Synthetic weights of the models that bake a voice: voice encoder, speech tokenizer, CAMPPlus.

Speech gives varied tokens and different speakers give different vectors, so that an error in any
layer changes the output.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .weights import (
    Table,
    Tensors,
    Weights,
    conv_weights,
    linear_weights,
    norm_weights,
)

SPEAKER_SIZE = 256
X_VECTOR = 192
VOICE_MELS = 40
LSTM_LAYERS = 3
TOKENIZER_MELS = 128
TOKENIZER_RATE = 16000
TOKENIZER_WINDOW = 400
DIGITS = 8  # of a speech token, each -1, 0 or 1
MEMORY = 31  # taps of the tokenizer's FSMN
FBANK = 80
HEAD_CHANNELS = 32
DENSE_BLOCKS = (12, 24, 16)  # layers
BOTTLENECK = 4  # times the growth


@dataclass(frozen=True)
class VoiceSize:
    lstm: int  # width
    tokenizer: int  # width, a multiple of the head size, 64
    tokenizer_layers: int
    growth: int  # channels that a dense layer adds
    x_vector: int  # channels before the dense blocks


VOICE_SIZES = {
    "small": VoiceSize(lstm=64, tokenizer=128, tokenizer_layers=2, growth=8, x_vector=32),
    "full": VoiceSize(lstm=256, tokenizer=1280, tokenizer_layers=6, growth=32, x_vector=128),
}


def voice_encoder_weights(size: VoiceSize) -> Tensors:
    """The tensors of ve.pt by official name."""
    width = size.lstm
    tensors = {
        "similarity_weight": Weights((1,), 0.0, mean=10.0),
        "similarity_bias": Weights((1,), 0.0, mean=-5.0),
    }
    for layer in range(LSTM_LAYERS):
        inputs = width if layer else VOICE_MELS
        tensors |= {
            f"lstm.weight_ih_l{layer}": Weights((4 * width, inputs), 2.0 * inputs**-0.5),
            f"lstm.weight_hh_l{layer}": Weights((4 * width, width), width**-0.5),
            f"lstm.bias_ih_l{layer}": Weights((4 * width,), 0.1),
            # The second of the four gates forgets: this way it remembers tenths of a second.
            f"lstm.bias_hh_l{layer}": Weights(
                (4 * width,), 0.1, mean=2.5, mean_rows=(width, 2 * width)
            ),
        }
    return tensors | linear_weights("proj", width, SPEAKER_SIZE, 2.0)


def speech_tokenizer_weights(size: VoiceSize) -> Tensors:
    """The tensors of S3TokenizerV2, as an S3Gen file names them."""
    name, width = "tokenizer.encoder.", size.tokenizer
    # Centred over groups of mels, so that changes of the spectrum count more than its level.
    tensors = conv_weights(name + "conv1", TOKENIZER_MELS, width, 3, 8.0, centred=32)
    tensors |= conv_weights(name + "conv2", width, width, 3, 2.0, centred=1)
    for layer in range(size.tokenizer_layers):
        tensors |= _tokenizer_layer(f"{name}blocks.{layer}.", width, size.tokenizer_layers)
    # Nothing scales the stream that the layers have added to before it becomes digits.
    gain = 1.1 * (1 + size.tokenizer_layers) ** -0.5
    return tensors | linear_weights(
        "tokenizer.quantizer._codebook.project_down", width, DIGITS, gain, centred=1
    )


def speech_tokenizer_tables() -> Tensors:
    """The mel filters and the window that an official file may hold beside the weights."""
    bins = TOKENIZER_WINDOW // 2 + 1
    return {
        "tokenizer._mel_filters": Table((TOKENIZER_MELS, bins), _mel_filters),
        "tokenizer.window": Table((TOKENIZER_WINDOW,), _hann_window),
    }


def _mel_filters() -> np.ndarray:
    """[128, 201] triangles of equal area, evenly spaced on Slaney's scale up to 8 kHz."""
    # 15 mels are 1 kHz: below them the scale is linear, above logarithmic, 27 mels for each 6.4.
    top = 15 + 27 * np.log(TOKENIZER_RATE / 2 / 1000) / np.log(6.4)
    mels = np.linspace(0, top, TOKENIZER_MELS + 2)
    corners = np.where(mels < 15, mels * 200 / 3, 1000 * 6.4 ** ((mels - 15) / 27))
    frequencies = np.linspace(0, TOKENIZER_RATE / 2, TOKENIZER_WINDOW // 2 + 1)
    left, centre, right = corners[:-2, None], corners[1:-1, None], corners[2:, None]
    rise = (frequencies - left) / (centre - left)
    fall = (right - frequencies) / (right - centre)
    return np.maximum(0, np.minimum(rise, fall)) * 2 / (right - left)


def _hann_window() -> np.ndarray:
    phase = 2 * np.pi * np.arange(TOKENIZER_WINDOW) / TOKENIZER_WINDOW
    return 0.5 - 0.5 * np.cos(phase)


def _tokenizer_layer(name: str, width: int, layers: int) -> Tensors:
    branch = (2 * layers) ** -0.5
    return {
        **linear_weights(name + "attn.query", width, width, 1.3),
        **linear_weights(name + "attn.key", width, width, 1.3, bias=None),
        **linear_weights(name + "attn.value", width, width, 0.7),
        **linear_weights(name + "attn.out", width, width, 3 * branch),
        name + "attn.fsmn_block.weight": Weights((width, 1, MEMORY), 0.7 * MEMORY**-0.5),
        **norm_weights(name + "attn_ln", width),
        **linear_weights(name + "mlp.0", width, 4 * width, 1.5),
        **linear_weights(name + "mlp.2", 4 * width, width, 2.5 * branch, centred=1),
        **norm_weights(name + "mlp_ln", width),
    }


def speaker_encoder_weights(size: VoiceSize) -> Tensors:
    """The tensors of CAMPPlus, as an S3Gen file names them."""
    tensors = _head("speaker_encoder.head.")
    name, channels = "speaker_encoder.xvector.", size.x_vector
    head_outputs = HEAD_CHANNELS * FBANK // 8
    tensors |= _plain_conv(name + "tdnn.linear", (channels, head_outputs, 5))
    tensors |= _batch_norm(name + "tdnn.nonlinear.batchnorm", channels)
    for block, layers in enumerate(DENSE_BLOCKS, 1):
        for layer in range(1, layers + 1):
            tensors |= _dense_layer(f"{name}block{block}.tdnnd{layer}.", channels, size.growth)
            channels += size.growth
        tensors |= _batch_norm(f"{name}transit{block}.nonlinear.batchnorm", channels)
        tensors |= _plain_conv(f"{name}transit{block}.linear", (channels // 2, channels, 1), 1.6)
        channels //= 2
    tensors |= _batch_norm(name + "out_nonlinear.batchnorm", channels)
    tensors |= _plain_conv(name + "dense.linear", (X_VECTOR, 2 * channels, 1), 4.0, centred=2)
    return tensors | _batch_norm(name + "dense.nonlinear.batchnorm", X_VECTOR, affine=False)


def _head(name: str) -> Tensors:
    square = (HEAD_CHANNELS, HEAD_CHANNELS, 3, 3)
    tensors = _plain_conv(name + "conv1", (HEAD_CHANNELS, 1, 3, 3), 0.8)
    tensors |= _batch_norm(name + "bn1", HEAD_CHANNELS)
    for layer in (1, 2):
        for block in (0, 1):
            residual = f"{name}layer{layer}.{block}."
            for half in (1, 2):
                tensors |= _plain_conv(f"{residual}conv{half}", square)
                tensors |= _batch_norm(f"{residual}bn{half}", HEAD_CHANNELS)
            if block == 0:
                shortcut = (HEAD_CHANNELS, HEAD_CHANNELS, 1, 1)
                tensors |= _plain_conv(residual + "shortcut.0", shortcut)
                tensors |= _batch_norm(residual + "shortcut.1", HEAD_CHANNELS)
    tensors |= _plain_conv(name + "conv2", square)
    return tensors | _batch_norm(name + "bn2", HEAD_CHANNELS)


def _dense_layer(name: str, inputs: int, growth: int) -> Tensors:
    inner = BOTTLENECK * growth
    return {
        **_batch_norm(name + "nonlinear1.batchnorm", inputs),
        **_plain_conv(name + "linear1", (inner, inputs, 1)),
        **_batch_norm(name + "nonlinear2.batchnorm", inner),
        **_plain_conv(name + "cam_layer.linear_local", (growth, inner, 3), 3.5),
        **conv_weights(name + "cam_layer.linear1", inner, inner // 2, 1, 2.0, centred=1),
        **conv_weights(name + "cam_layer.linear2", inner // 2, growth, 1, 2.0, centred=1),
    }


def _plain_conv(
    name: str, shape: tuple[int, ...], gain: float = 2**0.5, centred: int = 1
) -> Tensors:
    row = int(np.prod(shape[1:]))
    return {name + ".weight": Weights(shape, gain * row**-0.5, centred=centred)}


def _batch_norm(name: str, channels: int, affine: bool = True) -> Tensors:
    tensors = norm_weights(name, channels) if affine else {}
    return tensors | {
        name + ".running_mean": Weights((channels,), 0.1),
        name + ".running_var": Weights((channels,), 0.2, mean=1.0),
        name + ".num_batches_tracked": Weights((), 0.0, mean=1000.0, dtype="int64"),
    }
