"""Workers that are killed, and workers whose supervisor is."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import time
from pathlib import Path

import httpx
import pytest

from ..command import PATIENCE
from ..serving import Running, serving, until
from ..test_cli_serve import children

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="Linux tells of a process"),
]

OPTIONS = ("--workers", "2", "--threads", "1", "--shutdown-timeout", "1")
LONG = "This is one sentence of many that are to be said. " * 40
# The same without Linux's own signal: the pipe alone must do.
PORTABLE = """
import sys
from nightingale import cli
from nightingale.server import workers

workers.end_with_parent = lambda parent: None
if __name__ == "__main__":
    sys.exit(cli.main(sys.argv[1:]))
"""


def gauge(server: Running, name: str) -> float | None:
    with contextlib.suppress(httpx.TransportError):
        text = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
        found = re.search(rf"^nightingale_{name} (\S+)$", text, re.MULTILINE)
        return float(found[1]) if found else None
    return None


def test_what_a_killed_worker_was_doing_leaves_the_metrics(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    with serving(quick_checkpoint, tmp_path, *OPTIONS) as server:
        until(lambda: gauge(server, "loaded") == 2)
        known = set(children(server.process.pid))

        def replaced() -> bool:
            return len(set(children(server.process.pid)) - known) == 1

        for number in range(1, 3):
            os.kill(min(known & set(children(server.process.pid))), signal.SIGKILL)
            until(replaced)
            known.update(children(server.process.pid))
            # Of the models in memory those of the dead would still be counted.
            until(lambda: gauge(server, "loaded") == 2, 60)
            assert len(known) == 2 + number
        for _ in range(4):
            assert gauge(server, "loaded") == 2


@pytest.mark.parametrize("portable", [False, True])
def test_workers_end_with_a_supervisor_that_is_killed(
    quick_checkpoint: Path, tmp_path: Path, portable: bool
) -> None:
    script = tmp_path / "portable.py"
    script.write_text(PORTABLE)
    command = [sys.executable, str(script)] if portable else [sys.executable, "-m", "nightingale"]
    with serving(quick_checkpoint, tmp_path, *OPTIONS, command=command) as server:
        until(lambda: gauge(server, "loaded") == 2)
        workers = children(server.process.pid)
        assert len(workers) == 2
        body = {"model": "nightingale", "input": LONG, "response_format": "pcm"}
        url = f"{server.url}/v1/audio/speech"
        with (
            contextlib.suppress(httpx.TransportError),
            httpx.stream("POST", url, json=body, timeout=PATIENCE) as answer,
        ):
            parts = answer.iter_raw()
            next(parts)
            server.process.kill()
            began = time.monotonic()
            for _ in parts:  # one of them is busy
                pass
        until(lambda: not [pid for pid in workers if Path(f"/proc/{pid}").exists()], 60)
        assert time.monotonic() - began < 30
        assert server.process.wait(PATIENCE) == -signal.SIGKILL
