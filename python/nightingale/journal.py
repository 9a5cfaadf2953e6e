"""The result of each line of a batch, stored in its folder so that another run can resume."""

import fcntl
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._core import Error
from .atomic_files import atomic_path, unfinished_files
from .manifest import Line

JOURNAL = "results.jsonl"
LOCK = ".lock"


@dataclass(frozen=True)
class Request:
    """A line with all of its options."""

    line: Line
    options: dict[str, Any]
    digest: str  # of all that the sound depends on


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other batches out of a folder; the lock ends with the process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / LOCK, "a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Error(f"another batch is writing to {folder}; wait for its end") from None
        yield


class Journal:
    """The result of each line, in a folder's results.jsonl: one line of JSON for each."""

    def __init__(self, folder: Path, requests: Sequence[Request]) -> None:
        self._folder = folder
        self._path = folder / JOURNAL
        self._requests = {request.line.number: request for request in requests}
        self._entries = self._still_true(self._read())
        self._write()
        self._remove_unfinished()

    @property
    def missing(self) -> list[Request]:
        """The requests that are still to be made."""
        return [r for number, r in self._requests.items() if number not in self._entries]

    @property
    def errors(self) -> list[tuple[int, str]]:
        """Line numbers of this run that failed, and why."""
        return [(n, e["error"]) for n, e in sorted(self._entries.items()) if "error" in e]

    @contextmanager
    def recording(self) -> Iterator[Callable[[int, dict[str, Any]], None]]:
        """Yields a function that records a line's result. At the end the file is sorted by line."""
        with open(self._path, "a", encoding="utf-8") as file:

            def record(number: int, result: dict[str, Any]) -> None:
                request = self._requests[number]
                known = {"line": number, "output": request.line.output, "request": request.digest}
                entry = known | result
                file.write(f"{json.dumps(entry)}\n")
                file.flush()
                self._entries[number] = entry

            yield record
        self._write()

    def save(self, number: int, content: bytes) -> None:
        """Writes a line's file, which appears whole or not at all."""
        with atomic_path(self._folder / self._requests[number].line.output) as partial:
            partial.write_bytes(content)

    def _read(self) -> list[dict[str, Any]]:
        """All entries but one that a killed process left half written."""
        try:
            *lines, _ = self._path.read_text("utf-8").split("\n")
        except FileNotFoundError:
            return []
        except UnicodeDecodeError:
            lines = [""]
        try:
            entries = [json.loads(line) for line in lines]
            for entry in entries:
                entry["line"], entry["output"], entry["request"]
        except (ValueError, TypeError, KeyError):
            raise Error(f"{self._path} was not written by a batch; move it away") from None
        return entries

    def _still_true(self, entries: Iterable[dict[str, Any]]) -> dict[int, dict[str, Any]]:
        """Entries of requests as they are now whose file is there, by today's line number."""
        known = {(r.line.output, r.digest): number for number, r in self._requests.items()}
        kept = {}
        for entry in entries:
            number = known.get((entry["output"], entry["request"]))
            if number is not None and "error" not in entry and self._is_whole(entry):
                kept[number] = entry | {"line": number}
        return kept

    def _is_whole(self, entry: dict[str, Any]) -> bool:
        file = self._folder / entry["output"]
        return file.is_file() and file.stat().st_size == entry.get("bytes")

    def _write(self) -> None:
        with atomic_path(self._path) as partial:
            ordered = (self._entries[number] for number in sorted(self._entries))
            partial.write_text("".join(f"{json.dumps(entry)}\n" for entry in ordered), "utf-8")

    def _remove_unfinished(self) -> None:
        """What a killed process was writing."""
        names = {JOURNAL, *(request.line.output for request in self._requests.values())}
        for file, name in unfinished_files(self._folder):
            if name in names:
                file.unlink()
