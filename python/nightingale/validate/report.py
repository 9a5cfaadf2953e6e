"""Results of checks, as a table or as JSON."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

HEADINGS = ("check", "figure", "bound", "verdict")


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    name: str
    figure: str  # what was found, in words
    bound: str  # what it must keep, in words
    passed: bool | None  # None: not checked, and the figure says why
    values: dict[str, Any] = field(default_factory=dict)  # what was found, for programs
    notes: tuple[str, ...] = ()  # lines below the table

    @property
    def verdict(self) -> str:
        return {True: "pass", False: "FAIL", None: "skipped"}[self.passed]


def skipped(name: str, reason: str) -> Result:
    return Result(name, reason, "", None, {"reason": reason})


def all_passed(results: Iterable[Result]) -> bool:
    """Whether no check failed; one that was skipped has not."""
    return all(result.passed is not False for result in results)


def table(results: Sequence[Result]) -> str:
    """The results in columns, the notes below them, and a last line that sums up."""
    rows = [HEADINGS, *((r.name, r.figure, r.bound, r.verdict) for r in results)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    lines.insert(1, "  ".join("-" * width for width in widths))
    lines += [f"{result.name}: {note}" for result in results for note in result.notes]
    counts = Counter(result.verdict for result in results)
    lines.append(f"{counts['pass']} passed, {counts['FAIL']} failed, {counts['skipped']} skipped")
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> dict[str, Any]:
    names = ("name", "figure", "bound", "verdict", "values", "notes")
    checks = [{name: getattr(result, name) for name in names} for result in results]
    for check in checks:
        check |= {"verdict": check["verdict"].lower(), "notes": list(check["notes"])}
    return {"passed": all_passed(results), "checks": checks}
