"""Figures of an earlier run, kept in a file, beside those of this one."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Tolerance:
    """How far a figure may move, and which way is worse: -1 lower, 1 higher, 0 either."""

    distance: float
    worse: int = 0


# By check and figure; what is not here is not kept.
TOLERANCES = {
    ("clipping", "near_limit_share"): Tolerance(0.001, 1),
    ("clipping", "peak"): Tolerance(0.1),
    ("DC offset", "dc"): Tolerance(0.005),
    ("level", "rms_dbfs"): Tolerance(1.0),
    ("silence", "silent_share"): Tolerance(0.05),
    ("bands in Hz", "0-300 Hz"): Tolerance(0.03),
    ("bands in Hz", "300-3400 Hz"): Tolerance(0.03),
    ("bands in Hz", "3400-8000 Hz"): Tolerance(0.03),
    ("bands in Hz", "8000-12000 Hz"): Tolerance(0.03),
    ("seams: jump", "highest_ratio"): Tolerance(0.25, 1),
    ("seams: kink", "highest_ratio"): Tolerance(0.25, 1),
    ("stream: log-mel", "lowest_correlation"): Tolerance(0.005, -1),
    ("seams: log-mel", "lowest_correlation"): Tolerance(0.02, -1),
}


def snapshot(
    tts: TTS,
    inputs: dict[str, Any],
    spoken: Sequence[Audio],
    results: Sequence[Result],
) -> dict[str, Any]:
    """What a baseline file holds: where it was made, of what, and what came out."""
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
            f"{result.name}: {key}": result.values[key]
            for result in results
            for key in result.values
            if (result.name, key) in TOLERANCES
        },
    }


def context(tts: TTS) -> dict[str, Any]:
    """All that may change the last bit of the sound without a fault of the code."""
    from ..cli.machine import machine

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
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise _damaged(path, str(error)) from error
    if not isinstance(found, dict) or not all(
        isinstance(found.get(name), kind) for name, kind in PARTS.items()
    ):
        raise _damaged(path, f"it must hold {', '.join(PARTS)}")
    if found["format"] != FORMAT:
        raise _damaged(path, f"its format is {found['format']}, expected {FORMAT}")
    for utterance in found["utterances"]:
        fields = utterance if isinstance(utterance, dict) else {}
        kinds = {"sha256": str, "tokens_sha256": str, "tokens": int, "samples": int}
        if not all(isinstance(fields.get(name), kind) for name, kind in kinds.items()):
            raise _damaged(path, f"an utterance must hold {', '.join(kinds)}")
    if len(found["utterances"]) != len(found["inputs"].get("texts", ())):
        raise _damaged(path, "it must hold an utterance for each text")
    if not all(isinstance(value, (int, float)) for value in found["figures"].values()):
        raise _damaged(path, "its figures must be numbers")
    return found


def _damaged(path: Path, reason: str) -> Error:
    return Error(f"{path} is not a baseline: {reason}; --update writes it anew")


def write(path: Path, kept: dict[str, Any]) -> None:
    """The file appears whole or not at all."""
    with atomic_path(path) as partial:
        partial.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def refuse_other_inputs(path: Path, kept: dict[str, Any], inputs: dict[str, Any]) -> None:
    """An Error where the baseline is of other texts or settings: nothing can be compared."""
    for name in sorted({*kept["inputs"], *inputs}):
        was, now = kept["inputs"].get(name), inputs.get(name)
        if was != now:
            raise Error(
                f"{path} was made with {name} {was!r}, this run has {now!r}: give the same, "
                "another file, or --update"
            )


def compare(kept: dict[str, Any], found: dict[str, Any]) -> list[Result]:
    """Hashes and counts, exact where both runs were made in the same place, and figures."""
    moved = [
        f"{name} was {kept['context'].get(name)}, is {value}"
        for name, value in found["context"].items()
        if kept["context"].get(name) != value
    ]
    results = [_hashes(kept, found, moved), _counts(kept, found, exact=not moved)]
    return [*results, _figures(kept["figures"], found["figures"])]


def _hashes(kept: dict[str, Any], found: dict[str, Any], moved: list[str]) -> Result:
    name = "baseline: hashes"
    if moved:
        return skipped(name, f"made elsewhere: {'; '.join(moved)}")
    differing = [
        number
        for number, (was, now) in enumerate(_pairs(kept, found), 1)
        if was["sha256"] != now["sha256"]
    ]
    total = len(found["utterances"])
    notes = tuple(f"the audio of text {number} is another" for number in differing)
    figure = f"{total - len(differing)} of {total} equal"
    return Result(name, figure, "all equal", not differing, {"differing": differing}, notes)


def _counts(kept: dict[str, Any], found: dict[str, Any], exact: bool) -> Result:
    notes = []
    for number, (was, now) in enumerate(_pairs(kept, found), 1):
        for what in ("tokens", "samples"):
            off = abs(now[what] - was[what])
            if off > (0 if exact else COUNTS_OFF * was[what]):
                notes.append(f"text {number} had {was[what]} {what}, has {now[what]}")
    total = len(found["utterances"])
    figure = f"{len(notes)} of {2 * total} counts differ" if notes else f"{2 * total} counts kept"
    bound = "equal" if exact else f"within {COUNTS_OFF:.0%}, made elsewhere"
    return Result("baseline: counts", figure, bound, not notes, {"off": len(notes)}, tuple(notes))


def _figures(kept: dict[str, float], found: dict[str, float]) -> Result:
    worse, notes = [], []
    for name, was, now, tolerance in _compared(kept, found):
        change = now - was
        if abs(change) <= tolerance.distance:
            continue
        better = change * tolerance.worse < 0
        notes.append(
            f"{name} was {was:.4g}, is {now:.4g}{', which is better' if better else ''} "
            f"(tolerance {tolerance.distance:g})"
        )
        if not better:
            worse.append(name)
    gone = sorted(set(kept) - set(found))
    notes += [f"{name} was {kept[name]:.4g}, is not there now" for name in gone]
    total = len(set(kept) & set(found))
    figure = f"{total - len(worse)} of {total} kept"
    values = {"worse": worse, "gone": gone}
    passed = not worse and not gone
    return Result(
        "baseline: figures", figure, "each within its tolerance", passed, values, tuple(notes)
    )


def _compared(
    kept: dict[str, float], found: dict[str, float]
) -> Iterator[tuple[str, float, float, Tolerance]]:
    for (check, key), tolerance in TOLERANCES.items():
        name = f"{check}: {key}"
        if name in kept and name in found:
            yield name, kept[name], found[name], tolerance


def _pairs(
    kept: dict[str, Any], found: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from zip(kept["utterances"], found["utterances"], strict=True)
