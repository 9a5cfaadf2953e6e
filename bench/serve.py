"""Many clients at one server: how much audio it makes, and how long they wait for it.

    python -m bench.serve [--url http://127.0.0.1:8765] [--clients 1 4 8] [--rates 0.5 1 2]
    python -m bench.serve --serve --threads 2 --max-concurrent 8

Closed loop: each of N clients sends a request as soon as its last one is answered. Open loop:
requests come at random times, so many a second on average, whether others have been answered or
not. Every client reads the sound as it comes. A chunk is late where its listener, who began with
the first one, has heard all that came before it. Ratios are to one client in a closed loop.

Without --url a server is started, with the options that follow --serve.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import quantiles

import httpx

RATE = 24000
SAMPLE_BYTES = 2
NOTICED = 0.005  # seconds by which a chunk may come after its time and not be late
MOST_CLIENTS = 64  # none of which a server that is started here refuses
TEXTS = (
    "The library closes at nine, so we still have time to find the map and go home.",
    "Nobody expected the old clock to strike again after all those quiet years.",
    "Please leave the window open a little, because the room gets warm at night.",
    "She wrote a short letter, folded it twice and put it under the door.",
)


@dataclass
class Answer:
    """One request: seconds from its start, and its chunks."""

    first: float = 0.0
    end: float = 0.0
    seconds: float = 0.0  # of sound
    chunks: int = 0
    late: int = 0
    failed: bool = False

    def take(self, now: float, sound: float) -> None:
        """A chunk of so many seconds that came now."""
        if self.chunks == 0:
            self.first = now
        elif now > self.first + self.seconds + NOTICED:
            self.late += 1
        self.seconds += sound
        self.chunks += 1


@dataclass
class Load:
    """What became of the requests of one kind of load."""

    name: str
    elapsed: float
    answers: list[Answer] = field(default_factory=list)

    @property
    def good(self) -> list[Answer]:
        return [answer for answer in self.answers if not answer.failed]

    @property
    def audio_per_second(self) -> float:
        return sum(answer.seconds for answer in self.answers) / self.elapsed

    def first_audio(self, percent: int) -> float:
        """The wait that so many of the requests have at most."""
        waits = [answer.first for answer in self.good]
        if len(waits) < 2:
            return waits[0] if waits else float("nan")
        return quantiles(waits, n=100, method="inclusive")[percent - 1]

    def row(self, one: Load) -> list[str]:
        ratio = self.audio_per_second / one.audio_per_second if one.audio_per_second else 0
        chunks = sum(answer.chunks for answer in self.good)
        late = sum(answer.late for answer in self.good)
        return [
            self.name,
            str(len(self.answers)),
            f"{self.audio_per_second:.2f}",
            f"{ratio:.2f}",
            *(f"{self.first_audio(percent):.3f}" for percent in (50, 95, 99)),
            f"{late} of {chunks}",
            str(len(self.answers) - len(self.good)),
        ]


HEAD = [
    "load", "requests", "audio s/s", "ratio", "first audio p50 s", "p95 s", "p99 s",
    "late chunks", "failed",
]  # fmt: skip


async def request(client: httpx.AsyncClient, text: str, seed: int) -> Answer:
    """Has a text spoken and reads the sound as it comes."""
    answer = Answer()
    began = time.perf_counter()
    body = {"input": text, "response_format": "pcm", "seed": seed}
    try:
        async with client.stream("POST", "/v1/audio/speech", json=body) as response:
            response.raise_for_status()
            async for data in response.aiter_raw():
                sound = len(data) / SAMPLE_BYTES / RATE
                answer.take(time.perf_counter() - began, sound)
    except httpx.HTTPError:
        answer.failed = True
    answer.end = time.perf_counter() - began
    return answer


Ask = Callable[[int], Awaitable[Answer]]


async def closed_loop(ask: Ask, clients: int, seconds: float) -> Load:
    """clients: that each ask again as soon as they are answered, for so long."""
    began = time.perf_counter()
    answers: list[Answer] = []

    async def one(number: int) -> None:
        while time.perf_counter() - began < seconds:
            answers.append(await ask(len(answers) + number))

    await asyncio.gather(*(one(number) for number in range(clients)))
    name = f"{clients} client{'s' if clients > 1 else ''}"
    return Load(name, time.perf_counter() - began, answers)


async def open_loop(ask: Ask, rate: float, seconds: float) -> Load:
    """rate: requests a second, at times that a Poisson process has."""
    chance = random.Random(int(rate * 1000))
    began = time.perf_counter()
    tasks: list[asyncio.Task[Answer]] = []
    while (now := time.perf_counter() - began) < seconds:
        tasks.append(asyncio.ensure_future(ask(len(tasks))))
        await asyncio.sleep(min(chance.expovariate(rate), seconds - now))
    answers = await asyncio.gather(*tasks)
    return Load(f"{rate:g} requests/s", time.perf_counter() - began, list(answers))


async def measure(
    url: str,
    clients: Sequence[int],
    rates: Sequence[float],
    seconds: float,
    texts: Sequence[str] = TEXTS,
) -> list[Load]:
    """One client first, which the others are compared with."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(
        base_url=url, timeout=600, limits=limits, verify=False, trust_env=False
    ) as client:

        async def ask(number: int) -> Answer:
            return await request(client, texts[number % len(texts)], number)

        await ask(0)  # what is loaded at first use
        loads = [await closed_loop(ask, 1, seconds)]
        loads += [await closed_loop(ask, count, seconds) for count in clients if count > 1]
        loads += [await open_loop(ask, rate, seconds) for rate in rates]
    return loads


@contextmanager
def started(options: Sequence[str]) -> Iterator[str]:
    """A server at a free port, until the block ends; gives its URL."""
    command = [sys.executable, "-m", "nightingale", "serve", "--port", "0", "--no-access-log"]
    command += ["--max-queue", str(MOST_CLIENTS)]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr)
            found = next(filter(None, (re.search(r"listening on (\S+)", line) for line in lines)))
            threading.Thread(target=lambda: list(lines), daemon=True).start()
            yield found[1]
        finally:
            process.terminate()


def table(loads: Sequence[Load]) -> str:
    rows = [HEAD, ["---"] * len(HEAD), *(load.row(loads[0]) for load in loads)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--url", help="of a server that runs; without it one is started")
    arguments.add_argument("--clients", type=int, nargs="*", default=[1, 4, 8, 16, 32, 64])
    arguments.add_argument("--rates", type=float, nargs="*", default=[], help="requests a second")
    arguments.add_argument("--seconds", type=float, default=30, help="for which clients ask")
    arguments.add_argument("--json", type=Path, help="also write every answer here")
    arguments.add_argument(
        "--serve", nargs=argparse.REMAINDER, default=[], help="options of the server to start"
    )
    args = arguments.parse_args()
    if args.url:
        loads = asyncio.run(measure(args.url, args.clients, args.rates, args.seconds))
    else:
        with started(args.serve) as url:
            loads = asyncio.run(measure(url, args.clients, args.rates, args.seconds))
    print(table(loads))
    if args.json:
        args.json.write_text(json.dumps([asdict(load) for load in loads], indent=1))


if __name__ == "__main__":
    main()
