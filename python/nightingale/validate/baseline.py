"""Compares the results of a run with those of an earlier one, stored in a file."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _core
from .._core import Error
from ..atomic_files import atomic_path
from ..audio import Audio
from ..tts import TTS
from .repeatability import sha256
from .report import Result, skipped

FORMAT = 1
COUNTS_OFF = 0.25  # of a count, where rounding may differ
PARTS = {"format": int, "context": dict, "inputs": dict, "utterances": list, "figures": dict}
UTTERANCE = {"sha256": str, "tokens_sha256": str, "tokens": int, "samples": int}
# How far a figure may move, and which way is worse: -1 lower, 1 higher, 0 either. A figure that is
# not listed is not stored.
TOLERANCES = {
    "clipping: near_limit_share": (0.001, 1),
    "clipping: peak": (0.1, 0),
    "DC offset: dc": (0.005, 0),
    "level: rms_dbfs": (1.0, 0),
    "silence: silent_share": (0.05, 0),
    "bands in Hz: 0-300 Hz": (0.03, 0),
    "bands in Hz: 300-3400 Hz": (0.03, 0),
    "bands in Hz: 3400-8000 Hz": (0.03, 0),
    "bands in Hz: 8000-12000 Hz": (0.03, 0),
    "seams: jump: highest_ratio": (0.25, 1),
    "seams: kink: highest_ratio": (0.25, 1),
    "stream: log-mel: lowest_correlation": (0.005, -1),
    "seams: log-mel: lowest_correlation": (0.02, -1),
}

Pairs = Sequence[tuple[dict[str, Any], dict[str, Any]]]  # utterances of the baseline and this run


def snapshot(
    tts: TTS,
    inputs: dict[str, Any],
    spoken: Sequence[Audio],
    results: Sequence[Result],
) -> dict[str, Any]:
    """The content of a baseline file: machine and model, inputs, and results."""
    return {
        "format": FORMAT,
        "context": context(tts),
        "inputs": inputs,
        "utterances": [
            {
                "sha256": sha256(audio.samples),
                "tokens_sha256": sha256(audio.tokens),
                "tokens": len(audio.tokens),
                "samples": len(audio.samples),
            }
            for audio in spoken
        ],
        "figures": {
            name: value
            for result in results
            for key, value in result.values.items()
            if (name := f"{result.name}: {key}") in TOLERANCES
        },
    }


def context(tts: TTS) -> dict[str, Any]:
    """What can change the last bit of the audio without an error in the code."""
    from ..cli.doctor import machine

    info, checkpoint = tts.info, tts._checkpoint
    files = [checkpoint.t3, checkpoint.s3gen]
    return {
        "processor": machine()["processor"],
        "simd": _core.simd_name(),
        "blas": _core.blas_name(),
        "mlx": info["mlx"],
        "device": info["device"],
        "t3": info["t3"]["dtype"],
        "flow": f"{info['flow']['dtype']}, products {info['flow']['products']}",
        "model": {file.name: file.stat().st_size for file in files if file is not None},
    }


def read(path: Path) -> dict[str, Any]:
    """A baseline file, or an Error that says what is wrong with it."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not _has_fields(found, PARTS):
        raise _damaged(path, f"it must hold {', '.join(PARTS)}")
    if found["format"] != FORMAT:
        raise _damaged(path, f"its format is {found['format']}, expected {FORMAT}")
    if not all(_has_fields(utterance, UTTERANCE) for utterance in found["utterances"]):
        raise _damaged(path, f"an utterance must hold {', '.join(UTTERANCE)}")
    if len(found["utterances"]) != len(found["inputs"].get("texts", ())):
        raise _damaged(path, "it must hold an utterance for each text")
    if not all(isinstance(value, (int, float)) for value in found["figures"].values()):
        raise _damaged(path, "its figures must be numbers")
    return found


def _has_fields(found: Any, kinds: dict[str, type]) -> bool:
    return isinstance(found, dict) and all(
        isinstance(found.get(name), kind) for name, kind in kinds.items()
    )


def _damaged(path: Path, reason: str) -> Error:
    return Error(f"{path} is not a baseline: {reason}; --update writes it anew")


def write(path: Path, kept: dict[str, Any]) -> None:
    """The file appears whole or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_other_inputs(path: Path, kept: dict[str, Any], inputs: dict[str, Any]) -> None:
    """Raises an Error if the baseline was made with other texts or settings."""
    for name in sorted({*kept["inputs"], *inputs}):
        was, now = kept["inputs"].get(name), inputs.get(name)
        if was != now:
            raise Error(
                f"{path} was made with {name} {was!r}, this run has {now!r}: give the same, "
                "another file, or --update"
            )


def compare(kept: dict[str, Any], found: dict[str, Any]) -> list[Result]:
    """Compares hashes and counts, exactly if the contexts are equal, and figures."""
    moved = [
        f"{name} was {kept['context'].get(name)}, is {value}"
        for name, value in found["context"].items()
        if kept["context"].get(name) != value
    ]
    pairs = list(zip(kept["utterances"], found["utterances"], strict=True))
    return [
        _hashes(pairs, moved),
        _counts(pairs, exact=not moved),
        _figures(kept["figures"], found["figures"]),
    ]


def _hashes(pairs: Pairs, moved: list[str]) -> Result:
    name = "baseline: hashes"
    if moved:
        return skipped(name, f"made elsewhere: {'; '.join(moved)}")
    differing = [i for i, (was, now) in enumerate(pairs, 1) if was["sha256"] != now["sha256"]]
    total = len(pairs)
    notes = tuple(f"the audio of text {number} is another" for number in differing)
    figure = f"{total - len(differing)} of {total} equal"
    return Result(name, figure, "all equal", not differing, {"differing": differing}, notes)


def _counts(pairs: Pairs, exact: bool) -> Result:
    notes = []
    for number, (was, now) in enumerate(pairs, 1):
        for what in ("tokens", "samples"):
            off = abs(now[what] - was[what])
            if off > (0 if exact else COUNTS_OFF * was[what]):
                notes.append(f"text {number} had {was[what]} {what}, has {now[what]}")
    total = 2 * len(pairs)
    figure = f"{len(notes)} of {total} counts differ" if notes else f"{total} counts kept"
    bound = "equal" if exact else f"within {COUNTS_OFF:.0%}, made elsewhere"
    return Result("baseline: counts", figure, bound, not notes, {"off": len(notes)}, tuple(notes))


def _figures(kept: dict[str, float], found: dict[str, float]) -> Result:
    worse, notes = [], []
    for name, (distance, worse_sign) in TOLERANCES.items():
        if name not in kept or name not in found:
            continue
        was, now = kept[name], found[name]
        if abs(now - was) <= distance:
            continue
        better = (now - was) * worse_sign < 0
        notes.append(
            f"{name} was {was:.4g}, is {now:.4g}{', which is better' if better else ''} "
            f"(tolerance {distance:g})"
        )
        if not better:
            worse.append(name)
    gone = sorted(set(kept) - set(found))
    notes += [f"{name} was {kept[name]:.4g}, is not there now" for name in gone]
    total = len(set(kept) & set(found))
    figure = f"{total - len(worse)} of {total} kept"
    values = {"worse": worse, "gone": gone}
    bound, passed = "each within its tolerance", not worse and not gone
    return Result("baseline: figures", figure, bound, passed, values, tuple(notes))
