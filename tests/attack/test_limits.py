"""A system that gives no more memory or threads: an error with a message, never a crash."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from nightingale.options import MOST_THREADS

from ..command import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits address space")

MEGABYTE = 2**20
# Speaks with so much address space left after the import; the threads' stacks are part of it.
SPEAK = """
import re, resource, sys
import nightingale
from nightingale import _core

model, megabytes, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
used = int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
limit = used + megabytes * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    tts = nightingale.load(model, device="cpu", threads=threads)
    audio = tts.generate("Hello there.", max_tokens=20)
except nightingale.Error as error:
    sys.exit(f"Error: {error}")
except MemoryError:
    sys.exit("MemoryError")
print(len(audio.samples))
"""


def _speak(model: Path, megabytes: int, threads: int = 2) -> tuple[int, str]:
    """The exit status and what was said of it."""
    done = run(model, str(megabytes), str(threads), command=[sys.executable, "-c", SPEAK])
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("megabytes", [4, 40, 80, 120, 160, 240, 320, 480, 640])
def test_too_little_memory_is_an_error(megabytes: int, quick_checkpoint: Path) -> None:
    status, said = _speak(quick_checkpoint, megabytes)
    assert status in (0, 1), said
    if status == 1:
        assert said.splitlines()[-1].startswith(
            ("Error: out of memory", "Error: the system refused a thread", "MemoryError")
        )


def test_a_small_model_speaks_in_little_memory(quick_checkpoint: Path) -> None:
    """Blocks of a large model's size took more than twice as much."""
    status, said = _speak(quick_checkpoint, 1000)
    assert status == 0, said
    assert int(said) > 0


def test_threads_that_the_system_refuses_are_done_without(quick_checkpoint: Path) -> None:
    status, said = _speak(quick_checkpoint, 2000, threads=MOST_THREADS)
    assert status == 0, said
    assert int(said) > 0


@pytest.mark.parametrize("threads", ["40000", "0", "-1", "1" + "0" * 20])
def test_threads_beyond_the_limit_are_refused(threads: str, quick_checkpoint: Path) -> None:
    model = ["--model", str(quick_checkpoint), "-o", "-"]
    done = run("say", "Hi.", *model, "--threads", threads)
    assert done.returncode == 1
    assert (
        done.stderr
        == f"nightingale: --threads must be a whole number from 1 to 1024, not {threads}\n"
    )


@pytest.mark.parametrize("megabytes", [600, 900, 1200, 1600])
def test_the_command_line_speaks_or_says_why(
    megabytes: int, quick_checkpoint: Path, tmp_path: Path
) -> None:
    """The limit holds for the import as well, where numpy and BLAS may give up by themselves."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (megabytes * MEGABYTE, megabytes * MEGABYTE))

    path = tmp_path / "a.wav"
    model = ["--model", str(quick_checkpoint), "--device", "cpu", "--max-tokens", "20"]
    done = run("say", "Hello.", "-o", path, *model, preexec_fn=limit)
    assert done.returncode in (0, 1), done.stderr
    assert path.exists() == (done.returncode == 0)
    assert (done.stderr == "") == (done.returncode == 0)
