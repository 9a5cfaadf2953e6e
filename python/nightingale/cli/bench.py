"""`bench`: how fast a model speaks on this machine."""

from __future__ import annotations

import json
import statistics
import time
from contextlib import closing
from typing import Any

from ..options import SpeechOptions
from ..tts import TTS
from .options import CHUNKS, MARKUP, Arguments, add_shared, add_text, at_least, progress_bar

TEXT = "The nightingale sings at night, when most birds are asleep, and can be heard from far away."

# What a round gives, its unit, and how it is explained.
FIGURES = {
    "prefill": ("s", "T3: to the first speech token"),
    "decode": ("tokens/s", "T3: speech tokens after it"),
    "flow": ("s", "flow, all sentences whole"),
    "vocoder": ("s", "vocoder"),
    "total": ("s", "say: all of it"),
    "rtf": ("", "say: real-time factor, below 1 is fast"),
    "stream_ttfa": ("s", "stream: to the first audio"),
    "stream_rtf": ("", "stream: real-time factor"),
}


def add_commands(commands: Any) -> None:
    bench = commands.add_parser("bench", help="time a model on this machine")
    add_text(bench, "what to say; nothing: a sentence of 17 words; -: standard input")
    bench.add_argument("--rounds", type=int, default=3, help="after one to warm up (default: 3)")
    add_shared(bench, speech=True, without=(CHUNKS, MARKUP))
    bench.set_defaults(run=_bench)


def _bench(args: Arguments) -> None:
    at_least(1, "rounds", args.rounds)
    text = TEXT if not args.text and args.file is None else args.read_text()
    began = time.perf_counter()
    tts = args.load_model()
    loading = time.perf_counter() - began
    options = args.speech_options(tts)
    bar = progress_bar(iterable=range(args.rounds + 1), desc="rounds")
    rounds = [_round(tts, text, options) for _ in bar][1:]
    spoken = rounds[-1]
    results = {
        "model": tts.info,
        "text": text,
        "load": loading,
        "seconds": spoken["seconds"],
        "tokens": spoken["tokens"],
        "rounds": rounds,
        "figures": {name: _spread([each[name] for each in rounds]) for name in FIGURES},
    }
    if args.json:
        print(json.dumps(results))
    else:
        _print_table(results)


def _round(tts: TTS, text: str, options: SpeechOptions) -> dict[str, float]:
    began = time.perf_counter()
    tokens = tts.iter_speech_tokens(text, options)
    next(tokens, None)
    first = time.perf_counter()
    later = sum(1 for _ in tokens)
    decoding = time.perf_counter() - first

    audio = tts.generate(text, options)
    with closing(tts.stream(text, options)) as chunks:
        streamed = [chunk.timings for chunk in chunks][-1]
    return {
        "tokens": len(audio.tokens),
        "seconds": audio.duration,
        "prefill": first - began,
        "decode": later / decoding,
        **{name: audio.timings[name] for name in ("flow", "vocoder", "total", "rtf")},
        "stream_ttfa": streamed["ttfa"],
        "stream_rtf": streamed["rtf"],
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def _print_table(results: dict[str, Any]) -> None:
    info = results["model"]
    print(f"{info['model']}: {info['family']}, {info['t3']['dtype']}, {info['device']}", end=", ")
    print(f"{info['threads']} threads; loaded in {results['load']:.2f} s")
    print(f"{results['tokens']} speech tokens, {results['seconds']:.2f} s of speech; ", end="")
    print(f"median of {len(results['rounds'])} rounds (least to most)")
    for name, (unit, meaning) in FIGURES.items():
        spread = results["figures"][name]
        median = f"{spread['median']:.3g} {unit}".rstrip()
        print(f"  {meaning:<40}{median} ({spread['least']:.3g} to {spread['most']:.3g})")
