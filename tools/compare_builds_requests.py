"""Speaks 20 requests with the installed package and prints "NAME SHA-256" of each.

    python -I compare_builds_requests.py CHECKPOINT

compare_builds.sh runs this in two environments. It has only the arguments that both commits have.
Most requests are to the embedded voice. Its weights have 8 bits: those that quantize weights
are to CHECKPOINT, a small synthetic one, which also has torch files to read.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import nightingale
from nightingale import _core

ENGLISH = "The river rose in the night, and by morning the old bridge was gone."
SPANISH = "Hoy hace buen tiempo, vamos al jardín."
FRENCH = "Il fait beau aujourd'hui, allons au jardin."
ITALIAN = "Oggi il tempo è bello, andiamo in giardino."
PORTUGUESE = "Hoje o tempo está bom, vamos ao jardim."
LONG = (
    "Dr. Lee paid $12.50 on 3 May. It rained. [pause 300ms] Who would have thought so? "
    "Nobody had told the baker about the second delivery, which came at 5:30 p.m., long after "
    "the shop was closed and the street was dark."
)

NOISE = {"max_tokens": 60}  # synthetic weights do not know when to stop

# Name, text, settings; those of "stream" are streamed. Grouped by the options of `load`.
Request = tuple[str, str, dict[str, Any]]
REQUESTS: list[tuple[dict[str, Any], list[Request]]] = [
    (
        {},
        [
            ("en", ENGLISH, {}),
            ("es", SPANISH, {"language": "es", "voice": "ef_dora"}),
            ("fr", FRENCH, {"language": "fr", "voice": "ff_siwis"}),
            ("it", ITALIAN, {"language": "it", "voice": "im_nicola"}),
            ("pt", PORTUGUESE, {"language": "pt", "voice": "pf_dora"}),
            ("stream-en", ENGLISH, {"seed": 1, "speed": 0.8}),
            ("stream-fr-small-chunks", FRENCH, {"language": "fr", "first_chunk": 6, "chunk": 10}),
            ("stream-long", LONG, {"voice": "bf_emma", "seed": 2}),
            ("long", LONG, {"voice": "bm_george", "seed": 2**63}),
            ("speed", ENGLISH, {"voice": "am_michael", "speed": 1.3, "seed": 7}),
            (
                "sampling",
                ENGLISH,
                {
                    "temperature": 0.6,
                    "cfg_weight": 0.3,
                    "exaggeration": 0.8,
                    "repetition_penalty": 1.4,
                    "min_p": 0.1,
                    "top_p": 0.9,
                    "steps": 3,
                    "max_tokens": 80,
                },
            ),
        ],
    ),
    ({"bits": 8}, [("stream-bits-8-es", SPANISH, {"language": "es"})]),
    ({"kv_bits": 4}, [("kv-bits-4-it", ITALIAN, {"language": "it"})]),
    ({"kv_bits": 8, "dtype": "bfloat16"}, [("kv-bits-8-bfloat16", ENGLISH, {})]),
    ({"kv_budget": 0.5, "threads": 1}, [("kv-budget", ENGLISH, {})]),
    ({"draft": "ngram"}, [("draft-ngram-fr", FRENCH, {"language": "fr", "seed": 4})]),
    ({"draft": "layers"}, [("stream-draft-layers", ENGLISH, {"seed": 5})]),
]
SYNTHETIC_REQUESTS: list[tuple[dict[str, Any], list[Request]]] = [
    ({"bits": 8}, [("synthetic-bits-8", ENGLISH, NOISE)]),
    ({"bits": 4}, [("stream-synthetic-bits-4", ENGLISH, NOISE)]),
    ({"bits": 4, "kv_bits": 8}, [("synthetic-bits-4-kv-bits-8", ENGLISH, NOISE | {"seed": 3})]),
]


def main() -> None:
    for module in (nightingale, _core):
        if not Path(module.__file__).resolve().is_relative_to(Path(sys.prefix).resolve()):
            sys.exit(f"{module.__name__} is {module.__file__}, expected one in {sys.prefix}")
    threads = _core.threads()
    for model, groups in ((None, REQUESTS), (sys.argv[1], SYNTHETIC_REQUESTS)):
        for options, requests in groups:
            tts = nightingale.load(model, device="cpu", **({"threads": threads} | options))
            for name, text, settings in requests:
                print(name, sha256(tts, name.startswith("stream"), text, settings), flush=True)


def sha256(tts: nightingale.TTS, streamed: bool, text: str, settings: dict[str, Any]) -> str:
    """Of the samples; of a stream also of the lengths of its chunks."""
    found = hashlib.sha256()
    for part in tts.stream(text, **settings) if streamed else [tts.generate(text, **settings)]:
        found.update(len(part.samples).to_bytes(8, "little"))
        found.update(part.samples.tobytes())
    return found.hexdigest()


if __name__ == "__main__":
    main()
