"""A synthetic corpus: each letter is a distinct sound, so that every stage can be tested in seconds
without the teacher. Deterministic."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .data import RATE, split_of

FRAME = 600  # samples of a duration frame, 25 ms
TOKEN = 960  # samples of a speech token
MARGIN = 2  # frames of silence before and after
LETTER = 3  # frames
PAUSES = {" ": 2, ",": 5, ".": 4, "?": 4, "!": 4, "¿": 1, "¡": 1, "'": 1}  # frames
UNVOICED = {  # Hz: where the noise is, how wide
    "c": (3200, 900),
    "f": (5200, 2500),
    "h": (1500, 1200),
    "k": (1900, 500),
    "p": (900, 500),
    "s": (6300, 900),
    "t": (4200, 800),
    "x": (2600, 700),
}
CYCLE = 12  # rows, of which one is for validation and one has the held-out voice


@dataclass(frozen=True)
class _Voice:
    name: str
    pitch: float  # Hz
    formants: float  # factor


VOICES = (
    _Voice("af_heart", 210.0, 1.16),
    _Voice("am_michael", 115.0, 0.95),
    _Voice("bf_emma", 185.0, 1.07),
    _Voice("em_alex", 135.0, 1.0),
)
UNSEEN = _Voice("af_jessica", 160.0, 1.1)

TEXTS = {
    "en-us": """Hi. The cat sat on a red mat. We saw nine boats, but no sea. Is it late? Stop!
        A quick fox jumps. Bring me two cups of tea. My old dog likes to swim. Yes.
        Open the door. It rained all day. Who is there?""",
    "es": """Hola. El perro come pan. La casa es azul. ¿Dónde vive Ana? Hoy llueve mucho.
        Dos y dos son cuatro. ¡Qué bonito! Me gusta el mar. Sí. Abre la puerta.
        Mi hermano canta bien. Es tarde.""",
    "fr": """Bonjour. Le chat dort ici. La mer est calme. Où vas-tu? Il fait beau.
        Deux et deux font quatre. Quelle joie! J'aime le pain. Oui. Ferme la porte.
        Ma soeur lit un livre. Il est tard.""",
    "it": """Ciao. Il gatto dorme. La casa è grande. Dove vai? Oggi piove.
        Due e due fanno quattro. Che bello! Mi piace il mare. No. Apri la porta.
        Mio fratello canta. È tardi.""",
    "pt": """Oi. O gato dorme bem. A casa é azul. Onde você mora? Hoje chove.
        Dois e dois são quatro. Que lindo! Eu gosto do mar. Sim. Abra a porta.
        Meu irmão canta bem. É tarde.""",
}


def utterances() -> Iterator[tuple[dict, np.ndarray]]:
    """Index entries without their place in a shard, and their audio, [n] int16 at 24 kHz."""
    sentences = [
        (language, sentence + mark)
        for language, text in TEXTS.items()
        for sentence, mark in _sentences(" ".join(text.split()))
    ]
    for number, (language, sentence) in enumerate(sentences * 2):
        turn = number + number // CYCLE  # so that sentences have different voices
        voice = UNSEEN if number % CYCLE == 7 else VOICES[turn % len(VOICES)]
        phonemes = _letters(sentence)
        durations = [MARGIN, *(PAUSES.get(letter, LETTER) for letter in phonemes), MARGIN]
        entry = {
            "id": _id(number, "valid" if number % CYCLE == 3 else "train"),
            "lang": language,
            "voice": voice.name,
            "speed": 1.0,
            "text": sentence,
            "phonemes": phonemes,
            "source": "synthetic",
            "durations": durations,
        }
        yield entry, _synthesize(phonemes, durations, voice, np.random.default_rng(number))


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    start = 0
    for end, mark in enumerate(text):
        if mark in ".?!":
            yield text[start:end].strip(), mark
            start = end + 1


def _letters(text: str) -> str:
    """Without accents and characters that have no sound."""
    plain = unicodedata.normalize("NFD", text.lower())
    return "".join(c for c in plain if c in PAUSES or (c.isascii() and c.isalpha()))


def _id(number: int, part: str) -> str:
    """An id that split_of assigns to the part."""
    names = (f"tiny-{number:03d}-{attempt}" for attempt in itertools.count())
    return next(name for name in names if split_of(name, VOICES[0].name) == part)


def _synthesize(
    phonemes: str, durations: list[int], voice: _Voice, rng: np.random.Generator
) -> np.ndarray:
    """→ [n] int16, a whole number of speech tokens long"""
    sound = [np.zeros(durations[0] * FRAME)]
    for letter, frames in zip(phonemes, durations[1:-1], strict=True):
        sound.append(_sound_of(letter, frames * FRAME, voice, rng))
    sound.append(np.zeros(durations[-1] * FRAME))
    wave = np.concatenate(sound)
    wave = np.pad(wave, (0, -len(wave) % TOKEN))
    wave += 1e-4 * rng.standard_normal(len(wave))
    return np.round(32767 * np.clip(wave, -1, 1)).astype(np.int16)


def _sound_of(letter: str, length: int, voice: _Voice, rng: np.random.Generator) -> np.ndarray:
    if letter in PAUSES:
        return np.zeros(length)
    edge = np.minimum(np.arange(length), np.arange(length)[::-1]) / 240
    shape = np.minimum(edge, 1.0)
    if letter in UNVOICED:
        centre, width = UNVOICED[letter]
        spectrum = np.fft.rfft(rng.standard_normal(length))
        hz = np.fft.rfftfreq(length, 1 / RATE)
        noise = np.fft.irfft(spectrum * np.exp(-(((hz - centre) / width) ** 2)), length)
        return 0.06 * shape * noise / max(noise.std(), 1e-9)
    place = ord(letter) - ord("a")
    first = (300 + 90 * (place % 6)) * voice.formants
    second = (900 + 240 * (place % 7)) * voice.formants
    time = np.arange(length) / RATE
    pitch = voice.pitch * (1 + 0.03 * np.sin(2 * np.pi * 5 * time) - 0.1 * time)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    wave = np.zeros(length)
    for harmonic in range(1, int(4500 / voice.pitch)):
        hz = harmonic * voice.pitch
        peaks = ((first, 90, 1.0), (second, 130, 0.5), (2700 * voice.formants, 200, 0.2))
        level = sum(height * np.exp(-(((hz - at) / width) ** 2)) for at, width, height in peaks)
        wave += (level + 0.02) * np.sin(harmonic * phase)
    return 0.12 * shape * wave / max(wave.std(), 1e-9)
