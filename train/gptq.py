"""Quantizes T3 to 4 bits with GPTQ.

    python -m train.gptq MODEL OUT --text FILE [--sentences 64] [--agreement 0.95]

MODEL, a checkpoint of any size, generates the sentences of FILE, one per line, in its voices, and
the inputs of every matrix are collected. Each matrix is then quantized column by column, and the
following columns compensate the error. The last layers, whose errors are not compensated, stay in
8 bits: as many as needed for the most likely token to agree with MODEL's at the given rate, on a
quarter of the sentences that is held out. OUT is a checkpoint of its own, loaded without `bits`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

import nightingale
from nightingale import Voice, _core
from nightingale.checkpoint import find_checkpoint
from nightingale.quantization import GROUP, QuantizedTensor, write_folder

from .evaluation_sentences import read_lines
from .networks.t3 import T3, pack_rows
from .options import add_device, command_parser
from .t3_checkpoint import load_t3
from .training import log

BITS, FALLBACK_BITS = 4, 8
GUIDANCE = 0.5
DAMPING = 0.01  # of the mean of the diagonal, added to it
HELD_OUT = 4  # every fourth sentence
EMOTION = 0.5
LAYERS = "tfmr.layers."


@dataclass(frozen=True, eq=False)
class Speech:
    """A sentence with the model's speech tokens."""

    text: np.ndarray
    tokens: np.ndarray
    voice: Voice


def generate_calibration(folder: Path, texts: Sequence[str]) -> list[Speech]:
    """Generates the texts in the voices of the model in turn."""
    tts = nightingale.load(folder, dtype="float32", device="cpu")
    voices = [tts._voice(name) for name in tts.voices or [None]]
    said = []
    for number, text in enumerate(texts):
        voice = voices[number % len(voices)]
        tokens = tts.speech_tokens(text, voice=voice, seed=number)
        said.append(Speech(tts.tokenize(text), tokens, voice))
    return said


@torch.no_grad()
def guided_logits(model: T3, speech: Speech) -> Tensor:
    """The logits after the start of speech and after each token: [n, vocabulary]"""
    device = model.speech_head.weight.device
    layout = pack_rows(model.size, [speech.text], [speech.tokens])
    arrays = (layout.tokens, layout.positions, layout.output_positions)
    placed = (torch.from_numpy(array).to(device) for array in arrays)
    rows = model.guidance_rows(_voice(model, speech.voice), *placed)
    conditional, unconditional = (model.speech_head(row[0]) for row in rows)
    return conditional + GUIDANCE * (conditional - unconditional)


def _voice(model: T3, voice: Voice) -> Tensor:
    device = model.speech_head.weight.device
    speaker = torch.from_numpy(np.asarray(voice.speaker_emb, np.float32)).to(device)
    prompt = counts = None
    if voice.cond_prompt_speech_tokens is not None:
        found = np.asarray(voice.cond_prompt_speech_tokens, np.int64)
        prompt = torch.from_numpy(found).to(device)[None]
        counts = torch.tensor([len(found)], device=device)
    return model.voice(speaker[None], torch.tensor([EMOTION], device=device), prompt, counts)


def matrices(model: T3) -> dict[str, nn.Linear]:
    """The matrices to quantize, by tensor name."""
    return {
        f"{name}.weight": module
        for name, module in model.named_modules()
        if name.startswith(LAYERS) and isinstance(module, nn.Linear)
    }


def layer_of(name: str) -> int:
    return int(name.removeprefix(LAYERS).partition(".")[0])


def input_products(model: T3, said: Sequence[Speech]) -> dict[str, Tensor]:
    """The second moments of every matrix's inputs, XᵀX: [K, K]"""
    sums: dict[str, Tensor] = {}

    def watch(name: str, inputs: tuple[Tensor, ...]) -> None:
        x = inputs[0].flatten(0, -2)
        sums[name] = sums.get(name, 0) + x.T @ x

    hooks = [
        module.register_forward_pre_hook(lambda _, inputs, name=name: watch(name, inputs))
        for name, module in matrices(model).items()
    ]
    for speech in said:
        guided_logits(model, speech)
    for hook in hooks:
        hook.remove()
    return sums


@dataclass(frozen=True, eq=False)
class QuantizedMatrix:
    """A matrix in MLX's affine format: scale * value + bias."""

    values: Tensor  # [N, K] uint8
    scales: Tensor  # [N, K / GROUP] float16
    biases: Tensor

    def floats(self) -> Tensor:
        scales, biases = (x.float().repeat_interleave(GROUP, 1) for x in (self.scales, self.biases))
        return scales * self.values + biases

    def packed(self, bits: int) -> QuantizedTensor:
        """Packed as in a file, the first value of a word in its lowest bits."""
        values = self.values.cpu().numpy().astype(np.uint32)
        in_word = 32 // bits
        shifts = np.arange(in_word, dtype=np.uint32) * np.uint32(bits)
        parts = values.reshape(len(values), -1, in_word) << shifts
        words = np.bitwise_or.reduce(parts, axis=2)
        return words, self.scales.cpu().numpy(), self.biases.cpu().numpy()


def gptq_quantize(weight: Tensor, products: Tensor, bits: int) -> QuantizedMatrix:
    """weight: [N, K]; products: of `input_products`, [K, K]"""
    rest = weight.double().clone()  # the remaining columns with compensated errors
    upper = _inverse_factor(products.double())
    values = torch.zeros(weight.shape, dtype=torch.uint8, device=weight.device)
    scales, biases = [], []
    for begin in range(0, rest.shape[1], GROUP):
        columns = slice(begin, begin + GROUP)
        group, factor = rest[:, columns].clone(), upper[columns, columns]
        scale, bias = _range(group, bits)
        errors = torch.zeros_like(group)
        for at in range(GROUP):
            value = _quantized_values(group[:, at], scale, bias, bits)
            errors[:, at] = (group[:, at] - (scale * value + bias)) / factor[at, at]
            group[:, at + 1 :] -= errors[:, at, None] * factor[at, at + 1 :]
            values[:, begin + at] = value.to(torch.uint8)
        rest[:, begin + GROUP :] -= errors @ upper[columns, begin + GROUP :]
        scales.append(scale)
        biases.append(bias)
    return QuantizedMatrix(values, torch.stack(scales, 1).half(), torch.stack(biases, 1).half())


def _inverse_factor(products: Tensor) -> Tensor:
    """The upper Cholesky factor U of the inverse of the damped products. Row i has the shares of an
    error in column i by which the following columns change."""
    diagonal = products.diagonal()
    damped = products + torch.diag((DAMPING * diagonal.mean()).clamp_min(1e-8).expand_as(diagonal))
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True)


def _range(group: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Scale and bias, rounded to float16, that cover the range of the group."""
    least, most = group.amin(-1), group.amax(-1)
    scale = ((most - least) / (2**bits - 1)).half().double()
    return scale.clamp_min(torch.finfo(torch.float16).tiny), least.half().double()


def _quantized_values(x: Tensor, scale: Tensor, bias: Tensor, bits: int) -> Tensor:
    return ((x - bias) / scale).round().clamp(0, 2**bits - 1)


def round_to_nearest(weight: Tensor, bits: int) -> QuantizedMatrix:
    """Quantizes each number to the nearest value."""
    groups = weight.double().unflatten(1, (-1, GROUP))
    scale, bias = _range(groups, bits)
    values = _quantized_values(groups, scale[..., None], bias[..., None], bits)
    return QuantizedMatrix(values.flatten(1).to(torch.uint8), scale.half(), bias.half())


@contextmanager
def replaced(model: T3, weights: dict[str, Tensor]) -> Iterator[None]:
    modules = matrices(model)
    before = {name: modules[name].weight.data for name in weights}
    for name, weight in weights.items():
        modules[name].weight.data = weight
    try:
        yield
    finally:
        for name, weight in before.items():
            modules[name].weight.data = weight


def most_likely_tokens(model: T3, said: Sequence[Speech]) -> Tensor:
    return torch.cat([guided_logits(model, speech).argmax(-1) for speech in said])


class MixedPrecision:
    """The model with its first layers in 4 bits and the last in 8."""

    def __init__(self, model: T3, speech: Sequence[Speech]) -> None:
        self.layers = model.size.layers
        self._model = model
        self._held_out = speech[::HELD_OUT]
        self._expected = most_likely_tokens(model, self._held_out)
        products = input_products(model, [one for n, one in enumerate(speech) if n % HELD_OUT])
        self.quantized, self._fallback = {}, {}
        for name, module in matrices(model).items():
            self.quantized[name] = gptq_quantize(module.weight.data, products.pop(name), BITS)
            self._fallback[name] = round_to_nearest(module.weight.data, FALLBACK_BITS).floats()

    def agreement(self, layers: int) -> float:
        """The share of agreeing tokens with so many layers in 4 bits."""
        weights = {
            name: self.quantized[name].floats() if layer_of(name) < layers else self._fallback[name]
            for name in self.quantized
        }
        with replaced(self._model, weights):
            return float(
                (most_likely_tokens(self._model, self._held_out) == self._expected).float().mean()
            )

    def most_layers(self, least: float) -> tuple[int, float]:
        """The most layers in 4 bits that reach the agreement, and their agreement."""
        enough, found = 0, self.agreement(0)
        too_many = self.layers + 1
        while too_many - enough > 1:
            middle = (enough + too_many) // 2
            agreement = self.agreement(middle)
            log(f"{middle} of {self.layers} layers in {BITS} bits: {agreement:.2%} agree")
            if agreement >= least:
                enough, found = middle, agreement
            else:
                too_many = middle
        return enough, found


def quantize_checkpoint(
    folder: Path, out: Path, texts: Sequence[str], least: float, device: str
) -> None:
    checkpoint = find_checkpoint(folder)
    model = load_t3(checkpoint.t3).to(device)
    speech = generate_calibration(folder, texts)
    log(f"{len(speech)} sentences, {sum(len(one.tokens) for one in speech)} speech tokens")
    mixed = MixedPrecision(model, speech)
    layers, found = mixed.most_layers(least)
    if found < least:
        log(f"with all layers in {FALLBACK_BITS} bits only {found:.2%} agree")
    made = {
        name: matrix.packed(BITS)
        for name, matrix in mixed.quantized.items()
        if layer_of(name) < layers
    }

    def bits_of(_: object, name: str) -> int:
        low = name in made or not name.startswith(LAYERS)
        return _core.t3_bits(name, BITS if low else FALLBACK_BITS)

    write_folder(checkpoint, out, BITS, t3_bits_of=bits_of, made=made)
    log(f"{out}: {layers} of {mixed.layers} layers in {BITS} bits, {found:.2%} agree")


def main(arguments: list[str]) -> None:
    parser = command_parser("gptq", __doc__, "model", "out")
    parser.add_argument("--text", type=Path, required=True, help="one sentence on each line")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--agreement", type=float, default=0.95)
    add_device(parser)
    options = parser.parse_args(arguments)
    texts = [line.strip() for line in read_lines(options.text)][: options.sentences]
    if len(texts) < HELD_OUT:
        parser.error(f"{options.text} has {len(texts)} sentences; at least {HELD_OUT} are needed")
    quantize_checkpoint(options.model, options.out, texts, options.agreement, options.device)


if __name__ == "__main__":
    main(sys.argv[1:])
