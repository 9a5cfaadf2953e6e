"""`nightingale serve`: where it listens, whom it lets in, how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

import nightingale

from .command import PATIENCE, names_in, run
from .recordings import speech, wav_bytes
from .serving import Running, pcm, serving, until

pytestmark = pytest.mark.slow

KEY = "correct horse battery staple"


def get(server: Running, path: str, **headers: str) -> httpx.Response:
    return httpx.get(server.url + path, headers=headers, timeout=PATIENCE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "0.0.0.0 can be reached from other machines: give --key-file"),
        (["--host", "192.0.2.1", "--allow-unauthenticated"], "cannot listen at 192.0.2.1"),
        (["--port", "70000"], "cannot listen at 127.0.0.1, port 70000"),
        (["--workers", "0"], "--workers must be 1 or more, not 0"),
        (["--max-queue", "0"], "--max-queue must be 1 or more, not 0"),
        (["--unload-after", "-1"], "--unload-after must be above 0 s"),
        (["--key-file", "missing"], "missing"),
        (["--key-file", "empty"], "empty has no key in it"),
        (["--key-file", "short"], "8 ASCII characters or more"),
        (["--model", "nowhere/"], "nowhere"),
        (["--model", "nowhere/", "--workers", "2"], "nowhere"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_line(
    quick_checkpoint: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "short").write_text("1234567\n")
    model = ["--model", quick_checkpoint, "--port", "0"]
    done = run("serve", *model, *options, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("nightingale: ")
    assert message in line


def test_a_port_in_use_is_told(quick_checkpoint: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = run("serve", "--model", quick_checkpoint, "--port", port, cwd=tmp_path)
    assert done.returncode == 1
    assert f"cannot listen at 127.0.0.1, port {port}" in done.stderr


def test_without_its_libraries_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "fastapi.py").write_text("raise ModuleNotFoundError('no', name='fastapi')")
    done = run("serve", "--model", "x", env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == 1
    assert "pip install 'nightingale-tts[server]'" in done.stderr


def test_a_key_is_asked_for_and_the_page_is_not_secret(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text(KEY + "\n")
    with serving(quick_checkpoint, tmp_path, "--key-file", tmp_path / "key") as server:
        paths = ("/v1/models", "/v1/audio/voices", "/metrics")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {KEY}"}):
            for path in paths:
                refused = get(server, path, **headers)
                assert refused.status_code == 401
                assert refused.json()["error"]["code"] == "invalid_api_key"
                assert refused.headers["www-authenticate"] == "Bearer"
        for path in paths:
            assert get(server, path, Authorization=f"Bearer {KEY}").status_code == 200
        assert get(server, "/health").status_code == 200
        page = get(server, "/")
        assert page.headers["content-security-policy"].startswith("default-src 'self'")
        assert KEY not in "".join(server.log)


def test_other_sites_and_other_names_are_refused(quick_checkpoint: Path, tmp_path: Path) -> None:
    with serving(quick_checkpoint, tmp_path, "--allow-host", "Box.Local") as server:
        port = server.url.rpartition(":")[2]

        def status(**headers: str) -> int:
            return get(server, "/v1/models", **headers).status_code

        assert status(host=f"localhost:{port}") == 200
        assert status(host="box.local") == 200
        assert status(host="evil.example") == 421
        assert status(origin=server.url) == 200
        assert status(origin="https://evil.example") == 403
        assert status(origin="null") == 403
        answer = get(server, "/v1/models", origin=server.url)
        assert not [name for name in answer.headers if name.startswith("access-control")]


def test_limits_of_the_command_line_hold(quick_checkpoint: Path, tmp_path: Path) -> None:
    limits = ("--max-characters", "5", "--max-upload", "100000", "--max-voices", "1")
    with serving(quick_checkpoint, tmp_path / "voices", *limits) as server:
        assert server.speech("Hello.").status_code == 400

        def upload(name: str, seconds: float) -> int:
            files = {"audio_sample": wav_bytes(speech(seconds, 24000), 24000)}
            url = f"{server.url}/v1/audio/voices"
            return httpx.post(url, data={"name": name}, files=files, timeout=PATIENCE).status_code

        assert upload("Anna", 10) == 413
        assert upload("Anna", 2) == 201
        assert upload("Bea", 2) == 409
        assert names_in(tmp_path / "voices") == ["Anna.safetensors"]


def test_an_idle_model_is_unloaded_and_loaded_again(quick_checkpoint: Path, tmp_path: Path) -> None:
    with serving(quick_checkpoint, tmp_path, "--unload-after", "0.3") as server:
        before = server.speech("Hi.").content
        until(lambda: not server.health()["loaded"])
        assert server.speech("Hi.").content == before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_runs_is_finished_at_the_end(
    quick_checkpoint: Path, quick_tts: nightingale.TTS, tmp_path: Path, number: signal.Signals
) -> None:
    text = "Hello there. How are you?"
    body = {"model": "nightingale", "input": text, "response_format": "pcm"}
    with serving(quick_checkpoint, tmp_path, "--shutdown-timeout", str(PATIENCE)) as server:
        url = f"{server.url}/v1/audio/speech"
        with httpx.stream("POST", url, json=body, timeout=PATIENCE) as answer:
            parts = answer.iter_raw()
            first = next(parts)
            server.process.send_signal(number)
            said = first + b"".join(parts)
        assert server.process.wait(PATIENCE) == 128 + number
    assert said == pcm(np.concatenate([chunk.samples for chunk in quick_tts.stream(text)]))
    assert not [line for line in server.log if "Traceback" in line]


def test_what_would_take_longer_is_cut_off_at_the_end(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    body = {"model": "nightingale", "input": "One sentence of many. " * 400}
    with serving(quick_checkpoint, tmp_path, "--shutdown-timeout", "1") as server:
        url = f"{server.url}/v1/audio/speech"
        with httpx.stream("POST", url, json=body, timeout=PATIENCE) as answer:
            parts = answer.iter_raw()
            next(parts)
            server.process.send_signal(signal.SIGTERM)
            with pytest.raises(httpx.RemoteProtocolError):
                list(parts)
        assert server.process.wait(PATIENCE) == 128 + signal.SIGTERM


def test_several_workers_serve_at_one_address_and_come_back(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    with serving(quick_checkpoint, tmp_path, "--workers", "2", "--threads", "1") as server:
        assert "with 2 workers" in "".join(server.log)
        expected = server.speech("Hi.").content
        assert len(expected) > 24000
        workers = children(server.process.pid)
        assert len(workers) >= 2

        def seconds() -> float:
            text = get(server, "/metrics").text
            return float(re.search(r"^nightingale_speech_seconds_total (\S+)$", text, re.M)[1])

        # Whichever worker is asked, the counts are those of both.
        assert [seconds() for _ in range(4)] == [pytest.approx(len(expected) / 48000)] * 4
        os.kill(workers[-1], signal.SIGKILL)
        until(lambda: len(set(children(server.process.pid)) - set(workers)) == 1)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                assert server.speech("Hi.").content == expected
                break
            except httpx.TransportError:
                continue
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(PATIENCE)
        assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]


def children(pid: int) -> list[int]:
    """Worker processes of a process; multiprocessing's resource tracker is none."""
    workers = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        # One that was killed may go between being listed and being looked at.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if b"resource_tracker" not in Path(f"/proc/{child}/cmdline").read_bytes():
                workers.append(int(child))
    return workers
