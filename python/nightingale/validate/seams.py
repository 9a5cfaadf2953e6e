"""Compares streamed audio with `generate`: same tokens, same length, no audible seams."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..audio import Audio
from .log_mel import HOP, correlation, log_mel
from .report import Result, skipped

LARGEST_JUMP = 1.0  # of the 99.9th percentile elsewhere
LARGEST_KINK = 1.5  # of the largest nearby
NEARBY = 480  # samples on either side
GUARD = 4  # samples on either side that belong to the seam
QUIET = 1e-4  # second differences below are not heard, whatever is nearby
SEAM_FRAMES = 4  # of the log-mel, on either side of a seam
# Speech spans so many dB that 2 dB of difference are a correlation of 0.98; steady noise spans so
# few that its correlation is low however alike two of them are.
LEAST_CORRELATION = 0.98
SMALL_DIFFERENCE = 2.0  # dB
LARGEST_DIFFERENCE = 6.0  # dB; correlation does not hear a change of level
BY_CHANCE = 1.25  # how much larger differences may be at seams, which are few, than elsewhere
DECIBEL = 20 / np.log(10)
HEARD = 60 / DECIBEL  # below the loudest band, beside which what is softer does not count
TOO_SHORT = "nothing was long enough for a second chunk"


@dataclass(frozen=True, eq=False)
class StreamRun:
    """One text streamed with one chunking, and the result of `generate` for it."""

    name: str  # of the chunking
    samples: np.ndarray  # [n] of all chunks
    tokens: np.ndarray
    seams: Sequence[int]  # samples before each chunk but the first
    whole: Audio


def same_tokens(runs: Sequence[StreamRun]) -> Result:
    """Every chunking must give the same tokens as `generate`."""
    differing = [run for run in runs if not np.array_equal(run.tokens, run.whole.tokens)]
    notes = tuple(
        f"{run.name}: {len(run.tokens)} tokens, expected {len(run.whole.tokens)}; "
        f"the first {common_start(run.tokens, run.whole.tokens)} are the same"
        for run in differing
    )
    figure = f"{len(runs) - len(differing)} of {len(runs)} streams"
    values = {"streams": len(runs), "differing": len(differing)}
    return Result("stream: tokens", figure, "all as generate", not differing, values, notes)


def same_length(runs: Sequence[StreamRun]) -> Result:
    """Every chunking must give as many samples as `generate`."""
    off = [(run.name, len(run.samples) - len(run.whole.samples)) for run in runs]
    worst = max((count for _, count in off), key=abs)
    notes = tuple(f"{name}: {count:+d} samples" for name, count in off if count)
    values = {"largest_difference": worst}
    return Result("stream: length", f"{worst:+d} samples", "+0", worst == 0, values, notes)


def jumps(runs: Sequence[StreamRun]) -> Result:
    """The step across each seam against the 99.9th percentile of all other steps."""
    ratios = [ratio for run in runs if len(run.seams) for ratio in _jump(run)]
    figure = "{:.2f} of the percentile at most, {:.2f} in the middle ({} seams)"
    return _seam_ratios("seams: jump", ratios, figure, LARGEST_JUMP, "the 99.9th percentile")


def kinks(runs: Sequence[StreamRun]) -> Result:
    """The second difference at each seam against the largest within 20 ms of it."""
    ratios = [_kink(run.samples, seam) for run in runs for seam in run.seams]
    figure = "{:.2f} of the largest nearby at most"
    return _seam_ratios("seams: kink", ratios, figure, LARGEST_KINK, "the largest within 20 ms")


def _seam_ratios(
    name: str, found: Sequence[float], figure: str, largest: float, compared_with: str
) -> Result:
    """figure: a format of the highest ratio, the median and their count"""
    if not found:
        return skipped(name, TOO_SHORT)
    ratios = np.array(found)
    values = _spread("ratio", ratios) | {"seams": len(ratios)}
    text = figure.format(ratios.max(), np.median(ratios), len(ratios))
    bound = f"<= {largest:g} of {compared_with}"
    return Result(name, text, bound, bool((ratios <= largest).all()), values)


def likeness(runs: Sequence[StreamRun]) -> list[Result]:
    """Compares the log-mel with that of `generate`: over each stream, and near its seams."""
    overall, near, far = [], [], []
    for run in runs:
        count = min(len(run.samples), len(run.whole.samples))
        pair = _heard(log_mel(run.samples[:count]), log_mel(run.whole.samples[:count]))
        at, elsewhere = _windows(run.seams, pair[0].shape[1])
        overall.append(_alike(*pair))
        near += [_alike(*(mel[:, window] for mel in pair)) for window in at]
        far += [_alike(*(mel[:, window] for mel in pair)) for window in elsewhere]
    whole = _likeness("stream: log-mel", overall)
    if not near:
        return [whole, skipped("seams: log-mel", TOO_SHORT)]
    # What a stream solves differs from generate's a little everywhere. That is the whole stream's
    # to answer for; a seam is to add nothing to it.
    return [whole, _likeness("seams: log-mel", near, far, as_elsewhere=bool(whole.passed))]


def _heard(*mels: np.ndarray) -> list[np.ndarray]:
    floor = max(mel.max() for mel in mels) - HEARD
    return [np.maximum(mel, floor) for mel in mels]


def _alike(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Correlation, and the root of the mean squared difference in dB."""
    return correlation(one, other), float(DECIBEL * np.sqrt(np.mean((one - other) ** 2)))


def _likeness(
    name: str,
    found: Sequence[tuple[float, float]],
    elsewhere: Sequence[tuple[float, float]] = (),
    as_elsewhere: bool = False,
) -> Result:
    """Within the bounds or, with `as_elsewhere`, as close as the windows without a seam."""
    correlations, differences = np.array(found).T
    alike = (correlations >= LEAST_CORRELATION) & (differences <= LARGEST_DIFFERENCE)
    passed = bool((alike | (differences <= SMALL_DIFFERENCE)).all())
    figure = f"correlation {correlations.min():.4f}, {differences.max():.1f} dB at worst"
    values: dict[str, Any] = _spread("correlation", correlations)
    values |= _spread("difference_db", differences)
    bound = f">= {LEAST_CORRELATION} and {LARGEST_DIFFERENCE:g} dB, or {SMALL_DIFFERENCE:g} dB"
    notes: tuple[str, ...] = ()
    if passed and correlations.min() < LEAST_CORRELATION:
        notes = (
            f"a correlation is below {LEAST_CORRELATION}; where it is, the difference is "
            f"{SMALL_DIFFERENCE:g} dB or less",
        )
    if elsewhere:
        lowest, others = np.array(elsewhere).T
        figure += f" (elsewhere {lowest.min():.4f}, {others.max():.1f} dB)"
        bound += ", or as elsewhere"
        values["elsewhere"] = _spread("correlation", lowest) | _spread("difference_db", others)
        if not passed and as_elsewhere and _as_near(differences, others):
            passed = True
            notes = (
                f"not all is within the bounds, but it is as near as elsewhere: in the middle "
                f"{np.median(differences):.1f} dB, elsewhere {np.median(others):.1f}",
            )
    return Result(name, figure, bound, passed, values, notes)


def _as_near(differences: np.ndarray, elsewhere: np.ndarray) -> bool:
    """Whether differences at seams are no larger than those elsewhere but for chance."""
    return all(of(differences) <= BY_CHANCE * of(elsewhere) for of in (np.median, np.max))


def common_start(one: np.ndarray, other: np.ndarray) -> int:
    """How many tokens are the same before the first that differs."""
    count = min(len(one), len(other))
    differs = np.flatnonzero(one[:count] != other[:count])
    return int(differs[0]) if len(differs) else count


def _jump(run: StreamRun) -> np.ndarray:
    steps = np.abs(np.diff(run.samples.astype(np.float64)))
    at = np.array([seam - 1 for seam in run.seams])
    elsewhere = np.delete(steps, at)
    return np.asarray(steps[at] / max(float(np.percentile(elsewhere, 99.9)), QUIET))


def _kink(samples: np.ndarray, seam: int) -> float:
    begin, end = max(0, seam - NEARBY), min(len(samples), seam + NEARBY)
    bends = np.abs(np.diff(samples[begin:end].astype(np.float64), 2))
    centre = seam - begin - 1  # of the second differences, the one about the sample at the seam
    own = bends[max(0, centre - 1) : centre + 1].max(initial=0)
    others = np.delete(bends, np.arange(max(0, centre - GUARD), min(len(bends), centre + GUARD)))
    return float(own / max(others.max(initial=0), QUIET))


def _windows(seams: Sequence[int], frames: int) -> tuple[list[slice], list[slice]]:
    """Windows of frames around each seam, and windows of the same size without a seam."""
    width = 2 * SEAM_FRAMES
    at = []
    taken = np.zeros(frames, bool)
    for seam in seams:
        first = min(max(0, seam // HOP - SEAM_FRAMES), max(0, frames - width))
        at.append(slice(first, first + width))
        taken[at[-1]] = True
    places = (slice(first, first + width) for first in range(0, frames - width + 1, width))
    return at, [place for place in places if not taken[place].any()]


def _spread(what: str, values: np.ndarray) -> dict[str, float]:
    return {
        f"lowest_{what}": float(values.min()),
        f"middle_{what}": float(np.median(values)),
        f"highest_{what}": float(values.max()),
    }
