"""Attacks a server at random for a bounded time, and checks that nothing has come of it.

    python -m tests.attack.attacker --minutes 30 --seed 1

The time is divided among four servers: one process, two workers of which some are killed, one with
few file descriptors, and one with little memory. Clients act at random (acts.py). Between attacks
and at the end, normal requests must give the right sound, and memory, descriptors and threads must
be as before. A JSON summary is printed; the exit status is 1 where a fault was found.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from ..command import COMMAND
from ..process import anonymous, descriptors, threads
from ..serving import Running, serving
from .acts import ACTS, PATIENCE, Target, succeed

CLIENTS = 10
ATTACK_SECONDS = 20.0  # between two checks
CONTROL_ADDRESS = "127.0.0.9"  # not the attackers', as clients are told apart by address
QUIET_SECONDS = 90.0  # in which all that was begun must have ended
LITTLE_MEMORY = 5 * 2**29  # bytes of address space: an idle server has 1.6e9, a busy one 2.6e9
SETTLE_SECONDS = 15.0  # in which connections and threads that are about to end do so
REST_SECONDS = 4.0  # after which a server has given back what it does not need
MORE_MEMORY, MORE_FILES, MORE_THREADS = 30_000_000, 10, 50  # than before
OPTIONS = (
    *("--head-timeout", "2", "--stall-timeout", "2", "--websocket-timeout", "5"),
    *("--max-upload", "3000000", "--first-audio-timeout", "30", "--shutdown-timeout", "3"),
)
# `nightingale` with limits of the system, given first: files, and bytes of address space.
LIMITED = """
import resource, sys
from nightingale import cli
for kind in (resource.RLIMIT_NOFILE, resource.RLIMIT_AS):
    if limit := int(sys.argv.pop(1)):
        resource.setrlimit(kind, (limit, limit))
sys.exit(cli.main(sys.argv[1:]))
"""
# A line of the access log, of which there are as many as answers.
ANSWERED = re.compile(
    r"nightingale: \S+ [A-Z]+ \S+ (\d{3}|-) \d+\.\d{3} s \d+ bytes(, broken off)?$"
)
OUT_OF_MEMORY = ("MemoryError", "annot allocate", "bad_alloc", "start new thread", "out of memory")
Controls = dict[str, str]  # SHA-256 of the sound of each control text


@dataclass(frozen=True)
class Scene:
    """A server and how it is started."""

    name: str
    command: list[str] = field(default_factory=lambda: list(COMMAND))
    options: tuple[str, ...] = ()
    kills: bool = False  # of its workers
    short: bool = False  # of memory, so that requests may fail and say so in the log


def scenes() -> list[Scene]:
    few = [sys.executable, "-c", LIMITED, "64", "0"]
    little = [sys.executable, "-c", LIMITED, "0", str(LITTLE_MEMORY)]
    return [
        Scene("single"),
        Scene("workers", options=("--workers", "2", "--threads", "1"), kills=True),
        Scene("few files", few),
        Scene("little memory", little, ("--threads", "2"), short=True),
    ]


@dataclass(frozen=True)
class Use:
    """What the processes of a server use: of each kind the most that one has."""

    memory: int
    files: int
    threads: int

    def excess(self, before: Use) -> list[str]:
        limits = Use(MORE_MEMORY, MORE_FILES, MORE_THREADS)
        return [
            f"{name} grew from {getattr(before, name)} to {getattr(self, name)}"
            for name in ("memory", "files", "threads")
            if getattr(self, name) > getattr(before, name) + getattr(limits, name)
        ]


@dataclass
class Report:
    """What came of one scene."""

    scene: str
    seconds: float = 0.0
    acts: Counter[str] = field(default_factory=Counter)
    statuses: Counter[int] = field(default_factory=Counter)
    controls: int = 0  # right ones
    slowest_control: float = 0.0  # seconds, while attacked
    kills: int = 0
    before: Use | None = None
    after: Use | None = None
    memory: list[int] = field(default_factory=list)  # at rest, after each attack
    faults: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        counts = {"acts": dict(self.acts), "statuses": dict(self.statuses)}
        return asdict(replace(self, acts=Counter(), statuses=Counter())) | counts

    def fault(self, message: str) -> None:
        if len(self.faults) < 20:
            self.faults.append(message[:1000])


class Attack:
    """Attacks one server until its time is over."""

    def __init__(self, server: Running, scene: Scene, controls: Controls, seed: str) -> None:
        self.report = Report(scene.name)
        self._server = server
        self._scene = scene
        self._controls = controls
        self._seed = seed
        host, port = server.url.removeprefix("http://").split(":")
        self._target = Target(host, int(port))
        self._draw = random.Random(seed)
        self._lock = threading.Lock()
        self._read = 0  # lines of the log

    def run(self, seconds: float, attack_seconds: float = ATTACK_SECONDS) -> None:
        began = time.monotonic()
        try:
            self._check()
            self._warm_up()
            self._attack(min(attack_seconds, seconds / 3), 0)  # what opens and stays is there then
            self._check()
            time.sleep(REST_SECONDS)
            self.report.before = self._use()
            number = 1
            while time.monotonic() - began < seconds:
                self._attack(attack_seconds, number)
                self._check()
                self._compare()
                number += 1
        except (AssertionError, OSError, httpx.HTTPError, subprocess.SubprocessError) as error:
            self.report.fault(f"{type(error).__name__}: {error}")
        self.report.seconds = round(time.monotonic() - began, 1)

    def _warm_up(self) -> None:
        """Everything once, so that what is loaded when it is first needed is there; of two workers
        either may have answered, so that they are asked again."""
        for act in (succeed, *dict.fromkeys(ACTS), *([succeed] if self._scene.kills else [])):
            with contextlib.suppress(OSError):  # whose cause is found later
                act(self._target, self._draw)

    def _attack(self, seconds: float, number: int) -> None:
        end = time.monotonic() + seconds
        clients: list[threading.Thread] = [
            threading.Thread(
                target=self._client, args=(random.Random(f"{self._seed}-{number}-{client}"), end)
            )
            for client in range(CLIENTS)
        ]
        if self._scene.kills:
            clients.append(threading.Timer(self._draw.uniform(0, seconds), self._kill))
        for client in clients:
            client.start()
        while time.monotonic() < end:
            self._control(attacked=True)
            time.sleep(0.2)
        for client in clients:
            client.join(2 * PATIENCE)
            if client.is_alive():
                self.report.fault("a client got no answer")

    def _client(self, draw: random.Random, end: float) -> None:
        while time.monotonic() < end:
            act = draw.choice(ACTS)
            try:
                status = act(self._target, draw)
            except TimeoutError:
                self._fault(f"{act.__name__}: no answer in {PATIENCE:g} s")
                continue
            except OSError:
                status = 0  # refused, or a worker was killed
                time.sleep(0.05)
            with self._lock:
                self.report.acts[act.__name__] += 1
                self.report.statuses[status] += 1
            if status >= 500 and status != 503 and not self._scene.short:
                self._fault(f"{act.__name__}: status {status}")

    def _fault(self, message: str) -> None:
        with self._lock:
            self.report.fault(message)

    def _control(self, attacked: bool) -> None:
        """A normal request; while others attack it may be refused, or lost with its worker."""
        text = self._draw.choice(list(self._controls))
        began = time.monotonic()
        try:
            answer = self._ask(text)
        except httpx.TransportError as error:
            if not attacked or not (self._scene.kills or self._scene.short):
                self._fault(f"control: {type(error).__name__}: {error}")
            return
        refused = attacked and (answer.status_code in (429, 503) or self._scene.short)
        if answer.status_code != 200:
            if not refused:
                self._fault(f"control: status {answer.status_code}: {answer.text}")
        elif hashlib.sha256(answer.content).hexdigest() != self._controls[text]:
            self._fault(f"control: {text!r} has {len(answer.content)} wrong bytes")
        else:
            self.report.controls += 1
        if attacked:
            spent = round(time.monotonic() - began, 2)
            self.report.slowest_control = max(self.report.slowest_control, spent)

    def _ask(self, text: str) -> httpx.Response:
        body = {"model": "nightingale", "input": text, "response_format": "pcm"}
        transport = httpx.HTTPTransport(local_address=CONTROL_ADDRESS, verify=False)
        with httpx.Client(transport=transport, timeout=PATIENCE) as client:
            return client.post(f"{self._server.url}/v1/audio/speech", json=body)

    def _kill(self) -> None:
        draw = random.Random(f"{self._seed}-{self.report.kills}")
        os.kill(draw.choice(self._pids()), signal.SIGKILL)
        self.report.kills += 1

    def _pids(self) -> list[int]:
        """The processes that answer: the server's, or its workers."""
        pid = self._server.process.pid
        if not self._scene.kills:
            return [pid]
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in listed if b"spawn_main" in _command_line(child)]

    def _use(self) -> Use:
        pids = self._pids()
        return Use(*(max(map(used, pids)) for used in (anonymous, descriptors, threads)))

    def _check(self) -> None:
        """What must hold once nobody attacks."""
        self._wait_for_quiet()
        for _ in self._controls:
            self._control(attacked=False)
        log = "".join(line for line in self._server.log[self._read :] if not ANSWERED.match(line))
        self._read = len(self._server.log)
        for trace in log.split("Traceback (most recent call last)")[1:]:
            if not (self._scene.short and any(words in trace for words in OUT_OF_MEMORY)):
                self.report.fault(f"log: Traceback {trace}")
        if len(log) > 200_000:
            self.report.fault(f"log: {len(log)} characters")

    def _wait_for_quiet(self) -> None:
        end = time.monotonic() + QUIET_SECONDS
        while not self._is_quiet():
            if time.monotonic() > end:
                raise AssertionError("the server did not come to rest")
            time.sleep(0.2)

    def _is_quiet(self) -> bool:
        status = self._server.process.poll()
        if status is not None:
            raise AssertionError(f"the server ended with status {status}")
        workers = 2 if self._scene.kills else 1
        try:
            return len(self._pids()) == workers and self._server.idle()
        except (httpx.HTTPError, OSError):
            return False

    def _compare(self) -> None:
        """At rest, as `before` was; connections and threads that are about to end are waited
        for."""
        assert self.report.before is not None
        time.sleep(REST_SECONDS)
        end = time.monotonic() + SETTLE_SECONDS
        while True:
            self.report.after = self._use()
            excess = self.report.after.excess(self.report.before)
            if not excess or time.monotonic() > end:
                break
            time.sleep(0.5)
        self.report.memory.append(self.report.after.memory)
        for fault in excess:
            self.report.fault(fault)


def _command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def attack(
    scene: Scene, model: Path, controls: Controls, seed: str, seconds: float, **times: float
) -> Report:
    """Starts the server of a scene, attacks it and ends it."""
    options = (*OPTIONS, *scene.options)
    report = Report(scene.name)
    try:
        with (
            tempfile.TemporaryDirectory() as voices,
            serving(model, Path(voices), *options, command=scene.command) as server,
        ):
            attacking = Attack(server, scene, controls, seed)
            report = attacking.report
            attacking.run(seconds, **times)
            _end(server.process, report)
    except AssertionError as error:
        report.fault(f"the server does not start: {error}")
    return report


def _end(process: subprocess.Popen[str], report: Report) -> None:
    if process.poll() is not None:
        return
    process.send_signal(signal.SIGTERM)
    try:
        status = process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        report.fault("the server did not end")
        process.kill()
    else:
        if status != 128 + signal.SIGTERM:
            report.fault(f"the server ended with status {status}")


def expected_sounds(model: Path) -> Controls:
    """What the engine says directly."""
    import numpy as np

    import nightingale

    from ..serving import pcm

    tts = nightingale.load(model)
    said = {
        text: pcm(np.concatenate([chunk.samples for chunk in tts.stream(text)]))
        for text in ("Hi.", "No!", "How are you?")
    }
    return {text: hashlib.sha256(sound).hexdigest() for text, sound in said.items()}


def summary(reports: list[Report], seed: int) -> dict[str, Any]:
    faults = sum(len(report.faults) for report in reports)
    return {"seed": seed, "faults": faults, "scenes": [report.as_dict() for report in reports]}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="attacker", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--model", type=Path, help="a checkpoint (default: a small synthetic one)")
    parser.add_argument("--scene", choices=[scene.name for scene in scenes()], help="only this one")
    args = parser.parse_args(words)
    chosen = [scene for scene in scenes() if args.scene in (None, scene.name)]
    with tempfile.TemporaryDirectory() as folder:
        model = args.model or _synthetic_model(Path(folder))
        controls = expected_sounds(model)
        seconds = 60 * args.minutes / len(chosen)
        reports = []
        for scene in chosen:
            reports.append(attack(scene, model, controls, f"{args.seed}-{scene.name}", seconds))
            print(json.dumps(reports[-1].as_dict()), file=sys.stderr, flush=True)
    found = summary(reports, args.seed)
    print(json.dumps(found, indent=1))
    return 1 if found["faults"] else 0


def _synthetic_model(folder: Path) -> Path:
    from tools.synthetic import write_checkpoint

    write_checkpoint(folder / "model", meanflow=True)
    return folder / "model"


if __name__ == "__main__":
    sys.exit(main())
