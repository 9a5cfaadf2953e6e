"""The judge's scores of clips, kept as they come, and the tables made of them."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

JUDGED_AT_ONCE = 40  # clips between two lines of progress
RECOGNISERS = ("whisper", "moonshine")
DURATION_RATIOS = (0.6, 1.6)  # beyond them a sentence rambles, loops or stops early


def judge(clips: dict[str, tuple[Path, str, str]], folder: Path, kept: Path) -> dict[str, dict]:
    """Has the judge score clips by name: WAV, language, text. → its rows by name

    folder: made by the judge's setup.sh, score.py in it. Rows are added to the file `kept`; clips
    whose rows are in it are not scored again.
    """
    rows = read_rows(kept)
    waiting = [name for name in clips if name not in rows]
    for first in range(0, len(waiting), JUDGED_AT_ONCE):
        names = waiting[first : first + JUDGED_AT_ONCE]
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


def word_errors(said: str, heard: str) -> int:
    """Words to change, leave out or put in to make the one text the other."""
    expected, found = said.split(), heard.split()
    row = list(range(len(found) + 1))
    for i, word in enumerate(expected, 1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(found, 1):
            best = min(diagonal + (word != other), row[j] + 1, row[j - 1] + 1)
            diagonal, row[j] = row[j], best
    return row[-1]


def error_rate(rows: Iterable[dict], recogniser: str) -> float | None:
    """Per cent of the words of the judge's rows; None if this recogniser heard none of them."""
    heard = [row for row in rows if recogniser in row]
    words = sum(len(row["text"].split()) for row in heard)
    errors = sum(word_errors(row["text"], row[recogniser]) for row in heard)
    return round(100 * errors / words, 2) if words else None


def summary(student: list[dict], teacher: list[dict], ratios: list[float]) -> dict:
    """Scores of both on the same sentences; ratios: the student's durations to the teacher's."""
    low, high = DURATION_RATIOS
    found: dict[str, float | int | None] = {"sentences": len(student)}
    for who, rows in (("teacher", teacher), ("student", student)):
        for recogniser in RECOGNISERS:
            found[f"{who}_wer_{recogniser}"] = error_rate(rows, recogniser)
        found[f"{who}_mos"] = round(statistics.mean(row["mos"] for row in rows), 3)
    within = sum(low <= ratio <= high for ratio in ratios)
    found["durations_within"] = round(100 * within / len(ratios), 2)
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
