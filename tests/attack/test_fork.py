"""Processes that are forked after the core has started threads, which a fork does not copy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ..command import run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")

# Forks after `before`; the child runs `after` and must end by itself.
SCRIPT = """
import os, signal, sys
import nightingale

model = sys.argv[1]
{before}
child = os.fork()
if child == 0:
    signal.alarm(100)
    try:
        {after}
    except nightingale.Error as error:
        print(error, flush=True)
        sys.exit(3)
    sys.exit(4)
_, status = os.waitpid(child, 0)
print("child:", os.waitstatus_to_exitcode(status))
"""
LOAD = 'tts = nightingale.load(model, device="cpu")'
SPEAK = 'tts.generate("Hello there.", max_tokens=10)'


def _fork(model: Path, before: str, after: str) -> list[str]:
    script = SCRIPT.format(before=before, after=after)
    done = run(model, command=[sys.executable, "-c", script])
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    "after", [SPEAK, LOAD, "tts.speech_tokens('Hi.')", "tts.vocode([[0.0] * 4] * 80)"]
)
def test_what_needs_the_threads_raises_an_error(after: str, quick_checkpoint: Path) -> None:
    said, status = _fork(quick_checkpoint, LOAD, after)
    assert status == "child: 3"
    assert "forked" in said
    assert "'spawn'" in said


def test_a_fork_while_another_thread_speaks_does_not_wait_for_it(quick_checkpoint: Path) -> None:
    """The lock of the model may be held by a thread that the child does not have."""
    before = f"""
import threading
{LOAD}
def speak():
    while True:
        {SPEAK}
threading.Thread(target=speak, daemon=True).start()
"""
    said, status = _fork(quick_checkpoint, before, SPEAK)
    assert status == "child: 3"
    assert "forked" in said


def test_a_fork_before_anything_was_loaded_speaks(quick_checkpoint: Path) -> None:
    voice = 'voice = nightingale.Voice.load(model + "/conds.pt")'
    after = f"{LOAD}; {SPEAK.replace('max_tokens', 'voice=voice, max_tokens')}"
    assert _fork(quick_checkpoint, voice, after) == ["child: 4"]


def test_a_child_that_only_ends_does(quick_checkpoint: Path) -> None:
    assert _fork(quick_checkpoint, LOAD, "pass") == ["child: 4"]
