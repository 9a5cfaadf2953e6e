"""The teacher's voices: their languages and frequencies, and blends of several voices."""

from __future__ import annotations

import functools
import random
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

# Not trained on: cloning is evaluated with them. With the accent that they speak.
HELD_OUT_VOICES = {
    "af_jessica": "en-us",
    "af_river": "en-us",
    "am_echo": "en-us",
    "hf_beta": "en-us",
    "hm_psi": "en-us",
    "bf_lily": "en-gb",
    "bm_lewis": "en-gb",
    "em_santa": "es",
}

# With relative frequencies: better voices are used more. am_santa and pm_santa equal em_santa.
VOICES = {
    "en-us": {
        "af_heart": 6,
        "af_bella": 4,
        "af_sarah": 2,
        "af_kore": 2,
        "af_aoede": 2,
        "af_nova": 1.5,
        "af_alloy": 1.5,
        "af_sky": 1,
        "am_michael": 5,
        "am_fenrir": 4,
        "am_puck": 3,
        "am_eric": 1.5,
        "am_liam": 1.5,
        "am_onyx": 1.5,
        "am_adam": 1,
        "hf_alpha": 1,
        "hm_omega": 1,
    },
    "en-gb": {
        "bf_emma": 4,
        "bf_isabella": 2,
        "bf_alice": 1,
        "bm_george": 3,
        "bm_fable": 2,
        "bm_daniel": 1,
    },
    "es": {"ef_dora": 1, "em_alex": 1},
    "fr": {"ff_siwis": 1},
    "it": {"if_sara": 1, "im_nicola": 1},
    "pt": {"pf_dora": 1, "pm_alex": 1},
}
# The voices of the package.
SHIPPED_VOICES = {
    "en-us": ("af_heart", "am_michael", "af_sarah"),
    "en-gb": ("bf_emma", "bm_george"),
    "es": ("ef_dora", "em_alex"),
    "fr": ("ff_siwis",),
    "it": ("im_nicola", "if_sara"),
    "pt": ("pf_dora", "pm_alex"),
}
BLENDED = 0.4  # of the rows have a blend as their voice
# By which a voice is blended with others; the last one is less like the other than the voice is.
MIXTURES = ("{0}+{1}", "{0}+{0}+{1}", "{0}+{1}+{2}", "{0}+{0}+{0}-{1}")
PARTNERS = 8  # of each voice in each mixture


@functools.cache
def blends(accent: str) -> tuple[str, ...]:
    """Names such as af_heart+am_puck: sums of a voice of the accent and any others."""
    rng = random.Random(accent)
    everyone = sorted({voice for voices in VOICES.values() for voice in voices})
    found = set()
    for voice in VOICES[accent]:
        others = [other for other in everyone if other != voice]
        for mixture in MIXTURES:
            for _ in range(PARTNERS):
                found.add(mixture.format(voice, *rng.sample(others, 2)))
    return tuple(sorted(found))


def shares(name: str) -> dict[str, float]:
    """Of the voices in a blend; their sum is 1."""
    counts: Counter[str] = Counter()
    for sign, voice in re.findall(r"([+-]?)(\w+)", name):
        counts[voice] += -1 if sign == "-" else 1
    return {voice: count / counts.total() for voice, count in counts.items()}


def draw_voice(accent: str, rng: random.Random, shipped: float = 0.0) -> str:
    """shipped: the share of the package's voices"""
    if shipped and rng.random() < shipped:
        return rng.choice(SHIPPED_VOICES[accent])
    if rng.random() < BLENDED:
        return rng.choice(blends(accent))
    names, weights = zip(*VOICES[accent].items(), strict=True)
    return rng.choices(names, weights)[0]


def write_with_blends(source: Path, out: Path, names: Iterable[str]) -> None:
    """Writes the voices of the teacher's file `source` and the blends among `names` to `out`."""
    from safetensors.torch import load_file, save_file

    voices = load_file(source)  # [510, 256] each: a style for every phoneme count
    for name in names:
        if name not in voices:
            voices[name] = sum(share * voices[part].float() for part, share in shares(name).items())
    save_file(voices, out)
