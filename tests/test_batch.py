"""`batch`: every line is made once, whatever happens."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import cli
from nightingale.batch import Journal, locked, shares
from nightingale.batch_requests import Requests
from nightingale.checkpoint import find_checkpoint
from nightingale.manifest import Line
from nightingale.options import LoadOptions

from .command import PATIENCE, names_in, run, start
from .descendants import descendants

SHORT = {"max_tokens": 2, "steps": 1}
OPTIONS = ["--max-tokens", "2", "--steps", "1"]

pytestmark = pytest.mark.cluster

needs_ray = pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="ray is missing")


def write_manifest(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


def results_of(folder: Path) -> list[dict[str, Any]]:
    """The entries of the journal, without one that is being written."""
    journal = folder / "results.jsonl"
    text = journal.read_text() if journal.exists() else ""
    return [json.loads(line) for line in text.split("\n")[:-1]]


def sha256(samples: np.ndarray) -> str:
    return hashlib.sha256(samples.astype("<f4").tobytes()).hexdigest()


def wait_until(condition: Callable[[], bool], batch: subprocess.Popen[str]) -> None:
    while not condition():
        assert batch.poll() is None, batch.communicate()
        time.sleep(0.05)


CLUSTER = """
import shutil, ray
context = ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False)
print(context.address_info["gcs_address"], flush=True)
input()
ray.shutdown()
shutil.rmtree(context.address_info["session_dir"])
"""


@dataclass(frozen=True)
class Cluster:
    address: str
    pid: int
    env: dict[str, str]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A Ray cluster that was there before."""
    command = [sys.executable, "-c", CLUSTER]
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    env = {**os.environ, **token, "RAY_USAGE_STATS_ENABLED": "0"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, env=env, **pipes) as process:
        yield Cluster(process.stdout.readline().strip(), process.pid, env)
        process.communicate("\n", timeout=PATIENCE)
    assert process.returncode == 0


@needs_ray
def test_two_hundred_lines_interrupted_twice_are_each_made_once(
    checkpoint: Path, tts: nightingale.TTS, cluster: Cluster, tmp_path: Path
) -> None:
    texts = ["Yes.", "No.", "Well.", "Go.", "Stay."]
    lines = [{"text": texts[i % 5], "seed": i % 20} for i in range(200)]
    manifest = write_manifest(tmp_path / "manifest.jsonl", lines)
    folder = tmp_path / "out"
    command = ["batch", manifest, "-o", folder, "--model", checkpoint, "--device", "cpu", *OPTIONS]
    command += ["--workers", "2"]
    done: dict[str, tuple[int, int]] = {}  # inode and time of files that the journal has

    def check_kept() -> int:
        """Nothing that was done has been done again; how many are done now."""
        entries = results_of(folder)
        now = {}
        for entry in entries:
            state = (folder / entry["output"]).stat()
            now[entry["output"]] = (state.st_ino, state.st_mtime_ns)
        assert len(now) == len(entries)
        assert {name: now[name] for name in done} == done
        done.update(now)
        return len(done)

    with start(*command) as batch:
        wait_until(lambda: len(results_of(folder)) >= 30, batch)
        batch.send_signal(signal.SIGINT)
        assert batch.communicate(timeout=PATIENCE) == ("", "nightingale: stopped\n")
    assert batch.returncode == 130
    stopped_at = check_kept()
    assert 30 <= stopped_at < 200
    assert len(names_in(folder)) == stopped_at + 2  # the journal and the lock

    with start(*command, start_new_session=True) as batch:
        wait_until(lambda: len(results_of(folder)) >= stopped_at + 30, batch)
        os.killpg(batch.pid, signal.SIGKILL)
        batch.communicate(timeout=PATIENCE)
    assert batch.returncode == -signal.SIGKILL
    (session,) = (Path(tempfile.gettempdir()) / "ray").glob(f"session_*_{batch.pid}")
    shutil.rmtree(session)  # which Ray had no time for
    killed_at = check_kept()
    assert stopped_at + 30 <= killed_at < 200

    # What a kill at the worst times leaves: a file whose entry is torn, and one half written.
    (folder / ".000200.wav.0a1b2c3d.partial").write_bytes(b"RIFF")
    (folder / "000200.wav").write_bytes(b"RIFF")
    with open(folder / "results.jsonl", "a") as journal:
        journal.write('{"line": 200, "output": "000200.wav", "req')

    with start(*command, "--address", cluster.address, env=cluster.env) as batch:
        wait_until(lambda: len(results_of(folder)) >= killed_at + 10, batch)
        os.kill(descendants(cluster.pid, "ray::MapWorker")[0], signal.SIGKILL)
        assert batch.communicate(timeout=PATIENCE) == ("", "")
    assert batch.returncode == 0
    assert check_kept() == 200
    names = [f"{number:06}.wav" for number in range(1, 201)]
    assert names_in(folder) == [".lock", *names, "results.jsonl"]
    entries = results_of(folder)
    assert [entry["line"] for entry in entries] == list(range(1, 201))
    assert [entry["output"] for entry in entries] == names
    expected = [tts.generate(**line, **SHORT) for line in lines[:20]]
    for i, entry in enumerate(entries):
        audio = expected[i % 20]
        assert entry["sha256"] == sha256(audio.samples)
        assert entry["seconds"] == audio.duration
        samples, rate = soundfile.read(folder / entry["output"], dtype="float32")
        assert rate == 24000
        np.testing.assert_allclose(samples, audio.samples, rtol=0, atol=1 / 32767)


@needs_ray
def test_lines_have_their_own_settings_and_failures(
    checkpoint: Path, tts: nightingale.TTS, cluster: Cluster, tmp_path: Path
) -> None:
    voice = tts._voice(None).with_exaggeration(0.9)
    voice.save(tmp_path / "me.safetensors")
    own = {"language": "fr", "seed": 3, "temperature": 1.2, "cfg_weight": 0.7, "max_tokens": 4}
    own |= {"exaggeration": 0.4, "repetition_penalty": 1.3, "min_p": 0.02, "top_p": 0.9}
    own |= {"steps": 2, "speed": 1.25}
    lines = [
        {"text": "Bonjour.", "output": "own.flac", **own},
        {"text": "Hello.", "output": "voice.mp3", "voice": str(tmp_path / "me.safetensors")},
        {"text": "Hello.", "output": "fast.ogg", "speed": 9},
        {"text": "Hello. \ud800", "output": "half.wav"},
        {"text": "Hello.", "seed": None},
    ]
    manifest = write_manifest(tmp_path / "manifest.jsonl", lines)
    folder = tmp_path / "out"
    command = ["batch", manifest, "-o", folder, "--model", checkpoint, "--device", "cpu", *OPTIONS]
    done = run(*command, "--seed", "5", "--address", cluster.address, env=cluster.env)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "nightingale: line 3: speed must be between 0.25 and 4.0, not 9.0",
        "nightingale: line 4: the text holds bytes that are not valid UTF-8",
        "nightingale: 2 of 5 lines failed; run it again",
    ]
    expected = [
        tts.generate("Bonjour.", **own),
        tts.generate("Hello.", voice=voice, seed=5, **SHORT),
        None,
        None,
        tts.generate("Hello.", seed=5, **SHORT),
    ]
    entries = results_of(folder)
    assert [entry["line"] for entry in entries] == [1, 2, 3, 4, 5]
    assert entries[2]["error"] == "speed must be between 0.25 and 4.0, not 9.0"
    for entry, audio in zip(entries, expected, strict=True):
        if audio is not None:
            assert entry["sha256"] == sha256(audio.samples)
            assert soundfile.info(folder / entry["output"]).frames == len(audio.samples)
    assert names_in(folder) == [".lock", "000005.wav", "own.flac", "results.jsonl", "voice.mp3"]


@pytest.fixture
def requests(checkpoint: Path) -> Requests:
    return Requests(find_checkpoint(checkpoint), LoadOptions(), {})


def finished(folder: Path, requests: Requests, lines: list[Line]) -> None:
    """Leaves the folder as a batch of these lines does."""
    journal = Journal(folder, [requests.request(line) for line in lines])
    with journal.recording() as record:
        for line in lines:
            journal.save(line.number, b"sound")
            record(line.number, {"seconds": 1.0, "sha256": "0", "bytes": 5})


def missing(folder: Path, requests: Requests, lines: list[Line]) -> list[int]:
    journal = Journal(folder, [requests.request(line) for line in lines])
    return [request.line.number for request in journal.missing]


LINES = [Line(number, "Hello.", f"{number}.wav", {"seed": number}) for number in (1, 2, 3)]


def test_what_is_done_is_not_done_again(requests: Requests, tmp_path: Path) -> None:
    assert missing(tmp_path, requests, LINES) == [1, 2, 3]
    finished(tmp_path, requests, LINES)
    assert missing(tmp_path, requests, LINES) == []
    moved = [Line(line.number + 1, line.text, line.output, line.options) for line in LINES]
    assert missing(tmp_path, requests, moved) == []
    assert [entry["line"] for entry in results_of(tmp_path)] == [2, 3, 4]


def test_what_has_changed_is_made_again(
    requests: Requests, checkpoint: Path, tts: nightingale.TTS, tmp_path: Path
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    finished(folder, requests, LINES)
    one, two, three = LINES
    other_text = Line(1, "Hello!", one.output, one.options)
    other_seed = Line(2, two.text, two.output, {"seed": 7})
    other_name = Line(3, three.text, "4.wav", three.options)
    assert missing(folder, requests, [other_text, other_seed, other_name]) == [1, 2, 3]
    finished(folder, requests, LINES)
    (folder / "1.wav").unlink()
    (folder / "2.wav").write_bytes(b"soun")
    assert missing(folder, requests, LINES) == [1, 2]
    finished(folder, requests, LINES)
    half = Requests(find_checkpoint(checkpoint), LoadOptions(dtype="float16"), {})
    assert missing(folder, half, LINES) == [1, 2, 3]

    voice = tts._voice(None)
    settings = {"voice": str(tmp_path / "me.safetensors")}
    lines = [Line(1, "Hello.", "1.wav", settings)]
    for exaggeration in (0.5, 0.6):  # the same name, another voice
        voice.with_exaggeration(exaggeration).save(settings["voice"])
        requests = Requests(find_checkpoint(checkpoint), LoadOptions(), {})
        requests.check(settings)
        assert missing(folder, requests, lines) == [1]
        finished(folder, requests, lines)
        assert missing(folder, requests, lines) == []


def test_a_line_that_failed_is_tried_again(requests: Requests, tmp_path: Path) -> None:
    journal = Journal(tmp_path, [requests.request(line) for line in LINES])
    with journal.recording() as record:
        record(2, {"error": "no"})
    assert journal.errors == [(2, "no")]
    finished(tmp_path, requests, LINES[:1])
    assert missing(tmp_path, requests, LINES) == [2, 3]


@pytest.mark.parametrize("content", [b"mine\n", b"\xff\n", b"[1]\n", b'{"line": 1}\n', b"{}\n{"])
def test_a_journal_of_someone_else_is_left_alone(
    content: bytes, requests: Requests, tmp_path: Path
) -> None:
    (tmp_path / "results.jsonl").write_bytes(content)
    with pytest.raises(nightingale.Error, match="was not written by a batch; move it away"):
        missing(tmp_path, requests, LINES)
    assert (tmp_path / "results.jsonl").read_bytes() == content


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        (["none.jsonl"], "none.jsonl: No such file or directory"),
        (["empty.jsonl"], "empty.jsonl has no lines"),
        (["good.jsonl", "--workers", "0"], "workers must be 1 or more, not 0"),
        (["good.jsonl", "--model", "none"], "there is no folder none, and it is not a hub id"),
        (["good.jsonl", "--language", "xx"], "unknown language 'xx'; this model speaks ar"),
        (["good.jsonl", "--voice", "no"], "unknown voice 'no': the model has default, "),
        (["good.jsonl", "-o", "good.jsonl"], "good.jsonl: File exists"),
    ],
)
def test_a_wrong_command_makes_nothing(
    args: list[str],
    phrase: str,
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "good.jsonl").write_text('{"text": "Hello."}')
    (tmp_path / "empty.jsonl").write_text("\n")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["batch", "-o", "out", "--model", str(checkpoint), *args]) == 1
    assert capsys.readouterr().err.startswith(f"nightingale: {phrase}")
    assert names_in(tmp_path) == ["empty.jsonl", "good.jsonl"]


def test_two_batches_do_not_share_a_folder(
    checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = write_manifest(tmp_path / "manifest.jsonl", [{"text": "Hello."}])
    folder = tmp_path / "out"
    with locked(folder):
        command = ["batch", str(manifest), "-o", str(folder), "--model", str(checkpoint)]
        assert cli.main(command) == 1
    expected = f"nightingale: another batch is writing to {folder}; wait for its end\n"
    assert capsys.readouterr() == ("", expected)
    assert names_in(folder) == [".lock"]


def test_without_ray_batch_says_how_to_get_it(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    manifest = write_manifest(tmp_path / "manifest.jsonl", [{"text": "Hello."}])
    command = ["batch", str(manifest), "-o", str(tmp_path), "--model", str(checkpoint)]
    assert cli.main(command) == 1
    expected = "nightingale: batch needs Ray: pip install 'nightingale-tts[ray]'\n"
    assert capsys.readouterr() == ("", expected)


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1:99999", "none.invalid:6379"])
def test_a_cluster_that_is_not_there_is_told(
    address: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = write_manifest(tmp_path / "manifest.jsonl", [{"text": "Hello."}])
    command = ["batch", str(manifest), "-o", str(tmp_path / "out"), "--model", str(checkpoint)]
    assert cli.main([*command, "--address", address]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors.startswith(f"nightingale: there is no Ray cluster at {address}: ")
    assert len(errors.splitlines()) == 1


def node(cpus: float, gpus: float = 0, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {"CPU": cpus, "GPU": gpus} if cpus else {}}


@pytest.mark.parametrize(
    ("nodes", "workers", "device", "expected"),
    [
        ([node(8)], 1, "auto", (8, 0)),
        ([node(8)], 3, "auto", (2, 0)),
        ([node(8), node(8)], 3, "auto", (4, 0)),
        ([node(0), node(8), node(16, alive=False)], 1, "auto", (8, 0)),
        ([node(8, 2), node(8, 2)], 2, "gpu", (8, 1)),
        ([node(8, 2)], 3, "auto", (2, 0.5)),
        ([node(8, 2)], 4, "cpu", (2, 0)),
    ],
)
def test_workers_share_the_cores_and_the_gpus(
    nodes: list[dict[str, Any]], workers: int, device: str, expected: tuple[int, float]
) -> None:
    assert shares(nodes, workers, device) == expected


def test_there_are_no_more_workers_than_cores() -> None:
    with pytest.raises(ValueError, match="workers must be at most 2, one for each core, not 3"):
        shares([node(2)], 3, "cpu")
