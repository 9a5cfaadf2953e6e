"""The server on Ray: two replicas behind one address, one of which is killed."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

import nightingale

from .descendants import descendants
from .serving import PATIENCE, pcm, until

if importlib.util.find_spec("ray") is None:
    pytest.skip("ray is missing", allow_module_level=True)

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of Ray itself
]

RECOVERY = 300  # seconds, of a busy machine

TEXT = "Hello there."
SEEDS = range(6)
CLIENTS = 4

# Answers each line with the states of the replicas, as JSON.
DRIVER = """
import json, logging, shutil, socket, sys
import ray, nightingale.ray
from ray import serve
with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
context = ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
serve.start(http_options={"host": "127.0.0.1", "port": port})
serve.run(nightingale.ray.app(json.loads(sys.argv[1])))
print(f"http://127.0.0.1:{port}", flush=True)
for _ in sys.stdin:
    deployments = serve.status().applications["default"].deployments
    print(json.dumps(deployments["Nightingale"].replica_states), flush=True)
serve.shutdown()
ray.shutdown()
shutil.rmtree(context.address_info["session_dir"])
"""


@dataclass(frozen=True)
class Cluster:
    """A Serve application that answers."""

    url: str
    process: subprocess.Popen[str]

    def states(self) -> dict[str, int]:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        while not (line := self.process.stdout.readline()).startswith("{"):
            assert line, "the driver has ended"  # others are Ray's
        return json.loads(line)

    def replicas(self) -> list[int]:
        return descendants(self.process.pid, "ray::ServeReplica")

    def body(self, **settings: object) -> dict[str, object]:
        return {"model": "nightingale", "input": TEXT, "response_format": "pcm", **settings}

    def at_work(self) -> list[int]:
        """Requests that run or wait; each replica is all but sure to be among those asked."""
        found = [httpx.get(f"{self.url}/health", timeout=PATIENCE).json() for _ in range(10)]
        return [health["running"] + health["waiting"] for health in found]


@pytest.fixture(scope="module")
def cluster(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    voices = tmp_path_factory.mktemp("voices")
    args = {"model": str(quick_checkpoint), "voices": str(voices), "device": "cpu"}
    args |= {"replicas": "2", "threads": "1"}  # words, as on Ray's command line
    command = [sys.executable, "-c", DRIVER, json.dumps(args)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    env = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0"}
    with subprocess.Popen(command, env=env, **pipes) as process:
        url = process.stdout.readline().strip()
        assert url, "it did not start"
        yield Cluster(url, process)
        process.communicate(timeout=PATIENCE)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def said(quick_tts: nightingale.TTS) -> dict[int, bytes]:
    """What the model says directly, by seed."""
    spoken = {seed: quick_tts.stream(TEXT, seed=seed) for seed in SEEDS}
    return {
        seed: pcm(np.concatenate([chunk.samples for chunk in chunks]))
        for seed, chunks in spoken.items()
    }


def test_a_killed_replica_returns_and_no_answer_is_wrong(
    cluster: Cluster, said: dict[int, bytes]
) -> None:
    answers: list[str] = []
    ended = threading.Event()

    def ask(client: httpx.Client, seed: int) -> str:
        try:
            answer = client.post(f"{cluster.url}/v1/audio/speech", json=cluster.body(seed=seed))
        except httpx.TransportError:
            return "broken off"
        if answer.status_code != 200:
            return f"status {answer.status_code}"
        return "right" if answer.content == said[seed] else "wrong"

    def keep_asking(number: int) -> None:
        choose = random.Random(number)
        with httpx.Client(timeout=PATIENCE) as client:
            while not ended.is_set():
                answers.append(ask(client, choose.choice(SEEDS)))

    def wait_for_right_ones(more: int) -> None:
        enough = answers.count("right") + more
        until(lambda: answers.count("right") >= enough)

    before = cluster.replicas()
    assert len(before) == 2
    clients = [threading.Thread(target=keep_asking, args=(n,)) for n in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        wait_for_right_ones(2 * CLIENTS)
        os.kill(before[0], signal.SIGKILL)
        wait_for_right_ones(CLIENTS)
        until(lambda: len(cluster.replicas()) == 2 and cluster.states() == {"RUNNING": 2}, RECOVERY)
        wait_for_right_ones(2 * CLIENTS)
    finally:
        ended.set()
        for client in clients:
            client.join()
    assert before[0] not in cluster.replicas()
    assert before[1] in cluster.replicas()
    failed = [answer for answer in answers if answer != "right"]
    assert set(failed) <= {"broken off", "status 500", "status 503"}
    assert len(failed) < answers.count("right")


def test_the_first_bytes_leave_before_the_speech_is_made(
    cluster: Cluster, said: dict[int, bytes]
) -> None:
    with httpx.stream(
        "POST", f"{cluster.url}/v1/audio/speech", json=cluster.body(seed=1), timeout=PATIENCE
    ) as answer:
        parts = list(answer.iter_raw())
    assert len(parts) > 1
    assert b"".join(parts) == said[1]


def test_hanging_up_ends_the_work(cluster: Cluster) -> None:
    body = cluster.body(input=" ".join([TEXT] * 50))
    url = f"{cluster.url}/v1/audio/speech"
    with ExitStack() as stack:
        parts = []
        for _ in range(4):  # Ray sends each to the replica that has less to do
            answer = httpx.stream("POST", url, json=body, timeout=PATIENCE)
            parts.append(stack.enter_context(answer).iter_raw())
        assert min(len(next(part)) for part in parts) > 0
        assert min(cluster.at_work()) >= 1
    until(lambda: sum(cluster.at_work()) == 0)


def test_a_web_socket_speaks(cluster: Cluster, said: dict[int, bytes]) -> None:
    live = f"{cluster.url.replace('http', 'ws')}/v1/audio/speech/live"
    with connect(live, open_timeout=PATIENCE) as socket:
        for message in ({"type": "begin", "seed": 2}, {"type": "text", "text": TEXT}):
            socket.send(json.dumps(message))
        socket.send(json.dumps({"type": "end"}))
        sound = b""
        while True:
            message = socket.recv(timeout=PATIENCE)
            if isinstance(message, bytes):
                sound += message
            elif json.loads(message)["type"] == "done":
                break
    assert sound == said[2]


def test_other_names_of_the_machine_are_refused(cluster: Cluster) -> None:
    headers = {"Host": "elsewhere.example"}
    answer = httpx.get(f"{cluster.url}/v1/models", headers=headers, timeout=PATIENCE)
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "unknown_host")


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        ({}, "no model was named"),
        ({"model": "none"}, "there is no folder none, and it is not a hub id"),
        ({"model": "", "pitch": "1"}, "pitch\n  Extra inputs are not permitted"),
        ({"model": "", "replicas": "0"}, "replicas\n  Input should be greater than or equal to 1"),
        ({"model": "", "max_queue": "many"}, "max_queue\n  Input should be a valid integer"),
        ({"model": "", "max_queue": "0"}, "max_queue must be 1 or more, not 0"),
    ],
)
def test_wrong_arguments_are_told_before_anything_runs(
    args: dict[str, str], phrase: str, checkpoint: Path, no_embedded_checkpoint: None
) -> None:
    from nightingale.ray import app

    given = {name: value or str(checkpoint) for name, value in args.items()}
    with pytest.raises((ValueError, nightingale.Error), match=re.escape(phrase)):
        app(given)
