"""Scores of the judge (speech recognizers and DistillMOS) and their summaries."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

CLIPS_PER_CALL = 40
RECOGNIZERS = ("whisper", "moonshine")
DURATION_RATIOS = (0.6, 1.6)  # outside of them a sentence loops or stops early


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


def summary(student: list[dict], teacher: list[dict], ratios: list[float]) -> dict:
    """Scores of both on the same sentences. ratios: of the student's and the teacher's durations"""
    low, high = DURATION_RATIOS
    found: dict[str, float | int | None] = {"sentences": len(student)}
    for who, rows in (("teacher", teacher), ("student", student)):
        for recognizer in RECOGNIZERS:
            found[f"{who}_wer_{recognizer}"] = error_rate(rows, recognizer)
        found[f"{who}_mos"] = round(statistics.mean(row["mos"] for row in rows), 3)
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
    return "\n".join(lines) + "\n"


def _pair(teacher: float | None, student: float | None) -> str:
    return "" if teacher is None else f"{teacher} → {student}"
