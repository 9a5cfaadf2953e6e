"""What a server does whose engine has failed: it says so at once and ends."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from nightingale.options import MOST_SECONDS, ServerOptions
from nightingale.server import Settings, create_app
from nightingale.server.jobs import EngineFailedError, EngineThread, Job

from ..command import PATIENCE, run
from ..serving import serving, until
from ..test_server_engine import Model, results, started

# The server with a fault in the engine's own code, once it has been idle.
BROKEN = """
import sys
from nightingale import cli
from nightingale.server.jobs import EngineThread

def broken(engine):
    raise MemoryError("injected")

EngineThread._unload = broken
if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.fixture
def broken_command(tmp_path: Path) -> list[str]:
    """A file, as workers import the main module anew."""
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    return [sys.executable, str(script)]


def break_engine(engine: EngineThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next step of any job is its last."""

    def fault(job: Job) -> None:
        raise MemoryError("injected")

    monkeypatch.setattr(engine, "_step", fault)


def test_requests_that_run_wait_and_come_fail_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def hold(model: Model) -> Iterator[Any]:
        gate.wait()
        yield None
        yield None

    async def ask() -> None:
        with started(running=1) as engine:
            jobs = [Job("a", hold), Job("b", hold)]
            for job in jobs:
                engine.submit(job)
            until(lambda: engine.running == 1, 20)
            break_engine(engine, monkeypatch)
            gate.set()
            for job in jobs:
                with pytest.raises(EngineFailedError):
                    await asyncio.wait_for(results(job), 10)
            with pytest.raises(EngineFailedError):
                engine.submit(Job("c", hold))
            assert engine.failed
            assert not engine.alive
            assert (engine.running, engine.waiting) == (0, 0)

    asyncio.run(ask())


def test_clients_and_health_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> tuple[httpx.Response, httpx.Response]:
        with started() as engine:
            app = create_app(Settings(), engine)
            break_engine(engine, monkeypatch)
            engine.submit(Job("a", lambda model: iter([None])))
            until(lambda: not engine.alive, 20)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://localhost"
            ) as client:
                body = {"model": "nightingale", "input": "Hello."}
                speech = await client.post("/v1/audio/speech", json=body)
                return speech, await client.get("/health")

    speech, health = asyncio.run(ask())
    assert speech.status_code == 503
    assert speech.json()["error"]["code"] == "engine_failed"
    assert health.status_code == 503
    assert health.json()["status"] == "failed"


def test_the_process_ends_for_its_supervisor(
    quick_checkpoint: Path, tmp_path: Path, broken_command: list[str]
) -> None:
    options = ("--unload-after", "2")
    with serving(quick_checkpoint, tmp_path, *options, command=broken_command) as server:
        began = time.monotonic()
        assert server.process.wait(PATIENCE) == 1
        assert time.monotonic() - began < 30
    log = "".join(server.log)
    assert "the engine has failed" in log
    assert "injected" in log


@pytest.mark.nightly
def test_a_worker_whose_engine_has_failed_is_replaced(
    quick_checkpoint: Path, tmp_path: Path, broken_command: list[str]
) -> None:
    options = ("--unload-after", "2", "--workers", "2", "--threads", "1")
    with serving(quick_checkpoint, tmp_path, *options, command=broken_command) as server:

        def ended() -> int:
            return "".join(server.log).count("the server ends, because its engine has failed")

        until(lambda: ended() >= 3)  # two workers and one in the place of the first
        assert server.process.poll() is None


@pytest.mark.parametrize("seconds", [float("inf"), float("nan"), 1e300, MOST_SECONDS + 1.0])
@pytest.mark.parametrize(
    "name", ["first_audio_timeout", "stall_timeout", "websocket_timeout", "unload_after"]
)
def test_no_duration_is_beyond_what_timers_take(name: str, seconds: float) -> None:
    with pytest.raises(ValueError, match=f"{name} must be above 0 s and at most 1000000 s, not"):
        ServerOptions(**{name: seconds})
    assert getattr(ServerOptions(**{name: MOST_SECONDS}), name) == MOST_SECONDS


@pytest.mark.parametrize("seconds", ["-1", "1000001"])
def test_the_time_to_shut_down_is_bounded(seconds: str) -> None:
    done = run("serve", "--port", "0", "--shutdown-timeout", seconds)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--shutdown-timeout must be between 0 and 1000000, not" in done.stderr
