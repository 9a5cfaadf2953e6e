"""T3 in 4 bits, its matrices rounded for what they multiply instead of each number to the nearest.

    python -m train.rounding MODEL OUT --text FILE [--sentences 64] [--agreement 0.95]

MODEL, a checkpoint of any size, says the sentences of FILE, one on each line, in its voices, and
what goes into every matrix meanwhile is gathered. Each is then rounded column by column, and the
columns to come make up for what one loses (GPTQ). The last layers, whose errors nothing evens out,
stay in 8 bits: as many as it takes for the likeliest token to be MODEL's own that often, on the
fourth part of the sentences to which nothing is fitted. OUT is a checkpoint of its own, which is
loaded without `bits`.
"""

from __future__ import annotations

import argparse
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
from nightingale.quantization import GROUP, Codes, write_folder

from .evaluation import read_lines
from .networks.t3 import T3, lay_out
from .t3_checkpoint import load_t3

BITS, MORE_BITS = 4, 8
GUIDANCE = 0.5
DAMPING = 0.01  # of the inputs' mean square, added to each: what was never seen is not trusted
HELD_OUT = 4  # every so many-th sentence is
EMOTION = 0.5
LAYERS = "tfmr.layers."


@dataclass(frozen=True, eq=False)
class Speech:
    """A sentence as the model said it."""

    text: np.ndarray
    tokens: np.ndarray
    voice: Voice


def say(folder: Path, texts: Sequence[str]) -> list[Speech]:
    """In all voices of the model in turn."""
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
    """After the start of speech and each of its tokens: [n, vocabulary]"""
    device = model.speech_head.weight.device
    layout = lay_out(model.size, [speech.text], [speech.tokens])
    arrays = (layout.tokens, layout.positions, layout.ask)
    placed = (torch.from_numpy(array).to(device) for array in arrays)
    rows = model.guidance_rows(_voice(model, speech.voice), *placed)
    told, untold = (model.speech_head(row[0]) for row in rows)
    return told + GUIDANCE * (told - untold)


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
    """What is rounded, by the names of the weights."""
    return {
        f"{name}.weight": module
        for name, module in model.named_modules()
        if name.startswith(LAYERS) and isinstance(module, nn.Linear)
    }


def layer_of(name: str) -> int:
    return int(name.removeprefix(LAYERS).partition(".")[0])


def gather(model: T3, said: Sequence[Speech]) -> dict[str, Tensor]:
    """Of every matrix the products of its inputs with each other, summed up: [K, K]"""
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
class Rounded:
    """A matrix in MLX's affine format: scale * code + bias."""

    codes: Tensor  # [N, K] uint8
    scales: Tensor  # [N, K / GROUP] float16
    biases: Tensor

    def floats(self) -> Tensor:
        scales, biases = (x.float().repeat_interleave(GROUP, 1) for x in (self.scales, self.biases))
        return scales * self.codes + biases

    def stored(self, bits: int) -> Codes:
        """As a file has them, the first code of a word lowest."""
        codes = self.codes.cpu().numpy().astype(np.uint32)
        in_word = 32 // bits
        shifts = np.arange(in_word, dtype=np.uint32) * np.uint32(bits)
        parts = codes.reshape(len(codes), -1, in_word) << shifts
        words = np.bitwise_or.reduce(parts, axis=2)
        return words, self.scales.cpu().numpy(), self.biases.cpu().numpy()


def rounded(weight: Tensor, products: Tensor, bits: int) -> Rounded:
    """weight: [N, K]; products: of `gather`, [K, K]"""
    left = weight.double().clone()  # what the columns to come should be
    upper = _inverse_factor(products.double())
    codes = torch.zeros(weight.shape, dtype=torch.uint8, device=weight.device)
    scales, biases = [], []
    for begin in range(0, left.shape[1], GROUP):
        columns = slice(begin, begin + GROUP)
        group, factor = left[:, columns].clone(), upper[columns, columns]
        scale, bias = _range(group, bits)
        errors = torch.zeros_like(group)
        for at in range(GROUP):
            code = _nearest_code(group[:, at], scale, bias, bits)
            errors[:, at] = (group[:, at] - (scale * code + bias)) / factor[at, at]
            group[:, at + 1 :] -= errors[:, at, None] * factor[at, at + 1 :]
            codes[:, begin + at] = code.to(torch.uint8)
        left[:, begin + GROUP :] -= errors @ upper[columns, begin + GROUP :]
        scales.append(scale)
        biases.append(bias)
    return Rounded(codes, torch.stack(scales, 1).half(), torch.stack(biases, 1).half())


def _inverse_factor(products: Tensor) -> Tensor:
    """The upper triangle U of which UᵀU is the damped products' inverse: its row says how the
    columns behind a diagonal's make up for an error there."""
    spread = products.diagonal()
    damped = products + torch.diag((DAMPING * spread.mean()).clamp_min(1e-8).expand_as(spread))
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(damped))
    return torch.linalg.cholesky(inverse, upper=True)


def _range(group: Tensor, bits: int) -> tuple[Tensor, Tensor]:
    """Scale and bias, as float16 has them, with which codes reach from the least to the most."""
    least, most = group.amin(-1), group.amax(-1)
    scale = ((most - least) / (2**bits - 1)).half().double()
    return scale.clamp_min(torch.finfo(torch.float16).tiny), least.half().double()


def _nearest_code(x: Tensor, scale: Tensor, bias: Tensor, bits: int) -> Tensor:
    return ((x - bias) / scale).round().clamp(0, 2**bits - 1)


def nearest(weight: Tensor, bits: int) -> Rounded:
    """Each number for itself."""
    groups = weight.double().unflatten(1, (-1, GROUP))
    scale, bias = _range(groups, bits)
    codes = _nearest_code(groups, scale[..., None], bias[..., None], bits)
    return Rounded(codes.flatten(1).to(torch.uint8), scale.half(), bias.half())


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


def likeliest(model: T3, said: Sequence[Speech]) -> Tensor:
    return torch.cat([guided_logits(model, speech).argmax(-1) for speech in said])


class Compromise:
    """The model with its first layers in 4 bits and the others in 8."""

    def __init__(self, model: T3, said: Sequence[Speech]) -> None:
        self.layers = model.size.layers
        self._model = model
        self._tried = said[::HELD_OUT]
        self._true = likeliest(model, self._tried)
        products = gather(model, [one for n, one in enumerate(said) if n % HELD_OUT])
        self.few, self._many = {}, {}
        for name, module in matrices(model).items():
            self.few[name] = rounded(module.weight.data, products.pop(name), BITS)
            self._many[name] = nearest(module.weight.data, MORE_BITS).floats()

    def agreement(self, layers: int) -> float:
        """With so many layers in 4 bits."""
        weights = {
            name: self.few[name].floats() if layer_of(name) < layers else self._many[name]
            for name in self.few
        }
        with replaced(self._model, weights):
            return float((likeliest(self._model, self._tried) == self._true).float().mean())

    def most_layers(self, least: float) -> tuple[int, float]:
        """How many may be in 4 bits for that agreement, and what it then is."""
        enough, found = 0, self.agreement(0)
        too_many = self.layers + 1
        while too_many - enough > 1:
            middle = (enough + too_many) // 2
            agreement = self.agreement(middle)
            _say(f"{middle} of {self.layers} layers in {BITS} bits: {agreement:.2%} agree")
            if agreement >= least:
                enough, found = middle, agreement
            else:
                too_many = middle
        return enough, found


def compress(folder: Path, out: Path, texts: Sequence[str], least: float, device: str) -> None:
    checkpoint = find_checkpoint(folder)
    model = load_t3(checkpoint.t3).to(device)
    said = say(folder, texts)
    _say(f"{len(said)} sentences, {sum(len(speech.tokens) for speech in said)} speech tokens")
    compromise = Compromise(model, said)
    layers, found = compromise.most_layers(least)
    if found < least:
        _say(f"with all layers in {MORE_BITS} bits no more than {found:.2%} agree")
    made = {
        name: codes.stored(BITS)
        for name, codes in compromise.few.items()
        if layer_of(name) < layers
    }

    def bits_of(_: object, name: str) -> int:
        few = name in made or not name.startswith(LAYERS)
        return _core.t3_bits(name, BITS if few else MORE_BITS)

    write_folder(checkpoint, out, BITS, t3_bits_of=bits_of, made=made)
    _say(f"{out}: {layers} of {compromise.layers} layers in {BITS} bits, {found:.2%} agree")


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="train.rounding",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path, help="a folder")
    parser.add_argument("--text", type=Path, required=True, help="one sentence on each line")
    parser.add_argument("--sentences", type=int, default=64)
    parser.add_argument("--agreement", type=float, default=0.95)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args(arguments)
    texts = [line.strip() for line in read_lines(options.text)][: options.sentences]
    if len(texts) < HELD_OUT:
        parser.error(f"{options.text} has {len(texts)} sentences; at least {HELD_OUT} are needed")
    compress(options.model, options.out, texts, options.agreement, options.device)


if __name__ == "__main__":
    main(sys.argv[1:])
