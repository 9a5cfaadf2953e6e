"""A manifest to sound files. Ray Data speaks the lines; a journal tells which are done."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ._core import Error
from .atomic_files import atomic_path, unfinished_files
from .batch_requests import Request
from .chunks import Chunk, whole_audio
from .loading import load
from .options import LoadOptions, SpeechOptions
from .speaking_together import RUNNING, in_turns
from .text.lexicon import Lexicon
from .voice import Voice

JOURNAL = "results.jsonl"
LOCK = ".lock"
MOST_BLOCKS = 10_000  # Ray takes a millisecond for each before it begins


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
        return file.is_file() and bool(file.stat().st_size == entry.get("bytes"))

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


class LineSpeaker:
    """Ray's actor: loads the model once and speaks several lines at once."""

    def __init__(
        self,
        model: str | None,
        loading: LoadOptions,
        voices: Mapping[str, Voice],
        lexicons: Mapping[str, Lexicon],
    ) -> None:
        # Ray calls from several threads, and MLX's streams belong to the one that loaded the model.
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._voices = voices
        self._lexicons = lexicons
        self._refused = ""
        try:
            self._tts = self._thread.submit(load, model, loading).result()
        except (Error, ValueError, OSError) as error:
            self._refused = str(error)  # raised here, Ray would tell it in fifty lines

    def __call__(self, table: Any) -> Any:
        """Rows as Arrow has them, and what is made of them."""
        return table.from_pylist(self.speak(table.to_pylist()))

    def speak(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """What is made of each row, in their order."""
        requests = [json.loads(row["request"]) for row in rows]
        if self._refused:
            made = [{"refused": self._refused} for _ in requests]
        else:
            made = self._thread.submit(self._speak_all, requests).result()
        empty = {"file": b"", "sha256": "", "seconds": 0.0, "error": "", "refused": ""}
        return [
            {"line": row["line"], **empty, **answer} for row, answer in zip(rows, made, strict=True)
        ]

    def _speak_all(self, requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
        answers: dict[int, dict[str, Any]] = {}
        for number, spoken in in_turns(partial(self._steps, request) for request in requests):
            try:
                answers[number] = _answer(requests[number], spoken)
            except (Error, ValueError) as error:
                answers[number] = {"error": str(error)}
            except Exception as error:  # one line's misfortune does not end the others
                answers[number] = {"error": f"unexpected {type(error).__name__}: {error}"}
        return [answers[number] for number in range(len(requests))]

    def _steps(self, request: dict[str, Any]) -> Iterator[Chunk | None]:
        options = request["options"]
        if options.get("voice") in self._voices:
            options["voice"] = self._voices[options["voice"]]
        options["lexicon"] = self._lexicons.get(options["lexicon"])
        return self._tts.stepwise(request["text"], **options, first_chunk=None)


def _answer(request: dict[str, Any], spoken: list[Chunk] | Exception) -> dict[str, Any]:
    """What was said of a line, as a file; raises what ended it."""
    if isinstance(spoken, Exception):
        raise spoken
    audio = whole_audio(spoken, request["text"], SpeechOptions())
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"speech{Path(request['output']).suffix}"
        audio.save(file)
        content = file.read_bytes()
    sha256 = hashlib.sha256(audio.samples.astype("<f4").tobytes()).hexdigest()
    return {"file": content, "sha256": sha256, "seconds": audio.duration}


def speak_lines(
    journal: Journal,
    model: str | None,
    loading: LoadOptions,
    voices: Mapping[str, Voice],
    lexicons: Mapping[str, Lexicon],
    *,
    workers: int = 1,
    address: str | None = None,
    told: Callable[[], None] = lambda: None,
) -> None:
    """Makes what the journal misses, in any order, and records it; calls `told` after each line.

    loading: threads None shares the cores among the workers. address: of a Ray cluster, "auto" for
    the one of this machine; None starts one of its own and ends it.
    """
    rows = [_row(request) for request in journal.missing]
    if not rows:
        return
    with cluster(address), journal.recording() as record:
        for answer in _answers(rows, min(workers, len(rows)), model, loading, voices, lexicons):
            if answer["refused"]:
                raise Error(answer["refused"])
            number, content = answer["line"], answer["file"]
            if answer["error"]:
                record(number, {"error": answer["error"]})
            else:
                journal.save(number, content)
                made = {name: answer[name] for name in ("seconds", "sha256")}
                record(number, made | {"bytes": len(content)})
            told()


def _row(request: Request) -> dict[str, Any]:
    """A request as Ray carries it: its columns have one type each, JSON carries any text."""
    line = request.line
    asked = {"text": line.text, "output": line.output, "options": request.options}
    return {"line": line.number, "request": json.dumps(asked)}


def _answers(
    rows: list[dict[str, Any]],
    workers: int,
    model: str | None,
    loading: LoadOptions,
    voices: Mapping[str, Voice],
    lexicons: Mapping[str, Lexicon],
) -> Iterator[dict[str, Any]]:
    """What the actors give for each row, as it comes: for as many at once as they speak."""
    import ray
    import ray.data
    from ray.exceptions import RayError

    cpus, gpus = shares(ray.nodes(), workers, loading.device)
    loading = replace(loading, threads=loading.threads or cpus, progress=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.CRITICAL)
    together = min(RUNNING, math.ceil(len(rows) / workers))
    blocks = min(math.ceil(len(rows) / together), MOST_BLOCKS)
    answers = (
        ray.data.from_items(rows, override_num_blocks=blocks)
        .map_batches(
            LineSpeaker,
            batch_size=together,
            batch_format="pyarrow",
            fn_constructor_kwargs={
                "model": model,
                "loading": loading,
                "voices": voices,
                "lexicons": lexicons,
            },
            compute=ray.data.ActorPoolStrategy(size=workers),
            num_cpus=cpus,
            num_gpus=gpus,
        )
        .iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
    )
    try:
        for table in answers:
            yield from table.to_pylist()
    except RayError as error:
        raise Error(f"Ray gave up: {_last_line(error)}") from error


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Connects Ray to a cluster, or starts one for the time being; either way quietly."""
    try:
        import ray
    except ModuleNotFoundError:
        raise Error("batch needs Ray: pip install 'nightingale-tts[ray]'") from None

    own = {"include_dashboard": False} if address is None else {}
    if address is None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    else:
        _check_reachable(address)
    os.environ["RAY_BACKEND_LOG_LEVEL"] = "fatal"
    on_sigterm = signal.getsignal(signal.SIGTERM)
    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):  # where Ray tells of its own
        try:
            with _silent_stderr():  # where it says that it will be silent
                context = ray.init(
                    address=address or "local",
                    log_to_driver=False,
                    logging_level=logging.CRITICAL,
                    **own,
                )
        except SystemExit:  # of Ray's own handler of SIGTERM
            sys.exit(128 + signal.SIGTERM)
        except (ConnectionError, RuntimeError, ValueError) as error:
            place = "start" if address is None else f"reach {address!r}"
            raise Error(f"Ray cannot {place}: {_last_line(error.__cause__ or error)}") from error
        try:
            if signal.getsignal(signal.SIGTERM) is not on_sigterm:  # Ray takes it for itself
                signal.signal(signal.SIGTERM, on_sigterm)
            yield
        finally:
            ray.shutdown()
            if address is None:
                shutil.rmtree(context.address_info["session_dir"], ignore_errors=True)


def _check_reachable(address: str) -> None:
    """Refuses an address where nothing listens, which Ray would try for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host, int(port)), timeout=10).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise Error(f"there is no Ray cluster at {address}: {reason}") from error


def _last_line(error: BaseException) -> str:
    """Of what may be a whole traceback in words."""
    return (str(error).strip() or type(error).__name__).splitlines()[-1]


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Python's own and what libraries write to the descriptor."""
    try:
        kept = os.dup(2)
    except OSError:  # there is none
        yield
        return
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def shares(nodes: Iterable[dict[str, Any]], workers: int, device: str) -> tuple[int, float]:
    """CPUs and GPUs of one worker where `workers` are spread over a cluster's machines."""
    machines = [n["Resources"] for n in nodes if n["Alive"] and n["Resources"].get("CPU", 0) >= 1]
    most = sum(int(machine["CPU"]) for machine in machines)
    if workers > most:
        raise ValueError(f"workers must be at most {most}, one for each core, not {workers}")
    on_each = math.ceil(workers / len(machines))
    cpus = max(1, int(min(machine["CPU"] for machine in machines)) // on_each)
    gpus = sum(int(machine.get("GPU", 0)) for machine in machines)
    if device == "cpu" or not gpus:
        return cpus, 0
    return cpus, 1 / math.ceil(workers / gpus)
