"""Scores of the judge (speech recognizers and DistillMOS) and their summaries."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

CLIPS_PER_CALL = 40
RECOGNIZERS = ("whisper", "moonshine")
DURATION_RATIOS = (0.6, 1.6)  # outside of them a sentence loops or stops early
RESAMPLES = 10_000


def judge(clips: dict[str, tuple[Path, str, str]], folder: Path, kept: Path) -> dict[str, dict]:
    """Scores clips by name (WAV, language, text) with the judge. → its rows by name

    folder: made by the judge's setup.sh, with score.py. Rows are appended to the file `kept`; clips
    that it already has are not scored again.
    """
    rows = read_rows(kept)
    waiting = [name for name in clips if name not in rows]
    for first in range(0, len(waiting), CLIPS_PER_CALL):
        names = waiting[first : first + CLIPS_PER_CALL]
        found = _score([clips[name] for name in names], folder, kept.with_suffix(".tsv"))
        with kept.open("a", encoding="utf-8") as file:
            for name, row in zip(names, found, strict=True):
                rows[name] = {"name": name} | row
                file.write(json.dumps(rows[name], ensure_ascii=False) + "\n")
        print(f"judged {first + len(names)} of {len(waiting)} clips", flush=True)
    return {name: rows[name] for name in clips}


def read_rows(kept: Path) -> dict[str, dict]:
    if not kept.exists():
        return {}
    with kept.open(encoding="utf-8") as lines:
        return {row["name"]: row for row in map(json.loads, lines)}


def _score(clips: Sequence[tuple[Path, str, str]], folder: Path, pairs: Path) -> list[dict]:
    pairs.write_text(
        "".join(f"{wav}\t{language}\t{text}\n" for wav, language, text in clips), encoding="utf-8"
    )
    command = [folder / "venv/bin/python", folder / "score.py", "--judge", folder, "--json", pairs]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    return [
        {key: value for key, value in row.items() if key != "path"} for row in rows if "path" in row
    ]


def edit_distance(found: Sequence[object], expected: Sequence[object]) -> int:
    """The Levenshtein distance: insertions, deletions and substitutions."""
    row = list(range(len(found) + 1))
    for i, wanted in enumerate(expected, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            best = min(diagonal + (wanted != other), row[j] + 1, row[j - 1] + 1)
            diagonal, row[j] = row[j], best
    return row[-1]


def word_errors(said: str, heard: str) -> int:
    """Insertions, deletions and substitutions of words."""
    return edit_distance(heard.split(), said.split())


def error_rate(rows: Iterable[dict], recognizer: str) -> float | None:
    """The word error rate in per cent; None if this recognizer has no rows."""
    scored = [row for row in rows if recognizer in row]
    words = sum(len(row["text"].split()) for row in scored)
    errors = sum(word_errors(row["text"], row[recognizer]) for row in scored)
    return round(100 * errors / words, 2) if words else None


def paired_difference(student: list[dict], teacher: list[dict], score: str) -> list[float] | None:
    """By how much the student's score is above the teacher's, and the ends of the interval in which
    95 % of resamples of the sentences (paired bootstrap) have it.

    Rows of one sentence stand at the same place. score: a recognizer, for its word error rate in
    points, or "mos". None if a row lacks it
    """
    pairs = list(zip(student, teacher, strict=True))
    if not all(score in row for pair in pairs for row in pair):
        return None
    if score == "mos":
        weights = np.ones(len(pairs))
        above = np.array([ours[score] - theirs[score] for ours, theirs in pairs])
    else:
        weights = np.array([len(row["text"].split()) for row in teacher], float)
        errors = [[word_errors(row["text"], row[score]) for row in pair] for pair in pairs]
        above = 100.0 * np.array([ours - theirs for ours, theirs in errors])
    chosen = np.random.default_rng(0).integers(len(pairs), size=(RESAMPLES, len(pairs)))
    resampled = above[chosen].sum(1) / weights[chosen].sum(1)
    low, high = np.quantile(resampled, (0.025, 0.975))
    return [round(float(v), 2) for v in (above.sum() / weights.sum(), low, high)]


def summary(student: list[dict], teacher: list[dict], ratios: list[float]) -> dict:
    """Scores of both on the same sentences. ratios: of the student's and the teacher's durations"""
    low, high = DURATION_RATIOS
    found: dict[str, float | int | list[float] | None] = {"sentences": len(student)}
    for who, rows in (("teacher", teacher), ("student", student)):
        for recognizer in RECOGNIZERS:
            found[f"{who}_wer_{recognizer}"] = error_rate(rows, recognizer)
        found[f"{who}_mos"] = round(statistics.mean(row["mos"] for row in rows), 3)
    for score in (*RECOGNIZERS, "mos"):
        found[f"above_{score}"] = paired_difference(student, teacher, score)
    length_mask = sum(low <= ratio <= high for ratio in ratios)
    found["durations_within"] = round(100 * length_mask / len(ratios), 2)
    found["duration_ratio"] = round(statistics.median(ratios), 3)
    return found


def markdown(summaries: dict[str, dict]) -> str:
    """The summaries by name as a table: teacher → student."""
    lines = [
        "| | sentences | WER Whisper % | WER Moonshine % | DistillMOS | median duration | "
        f"within {DURATION_RATIOS[0]}-{DURATION_RATIOS[1]} % |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, found in summaries.items():
        pairs = [
            _pair(found[f"teacher_{score}"], found[f"student_{score}"])
            for score in ("wer_whisper", "wer_moonshine", "mos")
        ]
        cells = [name, found["sentences"], *pairs]
        cells += [found["duration_ratio"], found["durations_within"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    compared = {name: found for name, found in summaries.items() if "above_mos" in found}
    if compared:
        lines += [
            "",
            "Above the teacher's, with intervals of 95 % (paired bootstrap over sentences):",
            "",
            "| | Whisper, points | Moonshine, points | DistillMOS |",
            "|---|---|---|---|",
        ]
    for name, found in compared.items():
        cells = [_interval(found[f"above_{score}"]) for score in (*RECOGNIZERS, "mos")]
        lines.append("| " + " | ".join([name, *cells]) + " |")
    return "\n".join(lines) + "\n"


def _interval(found: list[float] | None) -> str:
    if found is None:
        return ""
    value, low, high = (f"{v:+.2f}" for v in found)
    return f"{value} ({low} to {high})"


def _pair(teacher: float | None, student: float | None) -> str:
    return "" if teacher is None else f"{teacher} → {student}"
