"""Processes that end while the core works: Ctrl-C twice, and the end of the interpreter."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import pytest

from ..command import PATIENCE, names_in, run, start

pytestmark = pytest.mark.slow

LONG = "Hello there, this takes a while to say.\n\n" * 30
GENERATING = """
import sys, threading, time
import nightingale

model, seconds = sys.argv[1], float(sys.argv[2])
tts = nightingale.load(model, device="cpu")
begun = threading.Event()

def speak():
    while True:
        for step in tts.stepwise("Hello there, this takes a while to say."):
            begun.set()

threading.Thread(target=speak, daemon=True).start()
begun.wait()
time.sleep(seconds)
sys.exit(7)
"""
LOADING = """
import sys, threading, time
import nightingale

model, seconds = sys.argv[1], float(sys.argv[2])
nightingale.load(model, device="cpu")
begun = threading.Event()

def load():
    begun.set()
    nightingale.load(model, device="cpu", threads=2)

for _ in range(4):
    threading.Thread(target=load, daemon=True).start()
begun.wait()
time.sleep(seconds)
sys.exit(7)
"""


@pytest.mark.parametrize("gap", [0.0, 0.01, 0.1, 0.3])
def test_ctrl_c_twice_ends_as_once(gap: float, quick_checkpoint: Path, tmp_path: Path) -> None:
    model = ["--model", str(quick_checkpoint), "--device", "cpu"]
    with start("stream", LONG, "-o", tmp_path / "a.wav", "--json", *model) as speaker:
        try:
            assert '"index": 0' in speaker.stdout.readline()
            speaker.send_signal(signal.SIGINT)
            time.sleep(gap)
            speaker.send_signal(signal.SIGINT)
            _, errors = speaker.communicate(timeout=PATIENCE)
        finally:
            speaker.kill()
    assert (speaker.returncode, errors) == (130, "nightingale: stopped\n")
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("script", [GENERATING, LOADING], ids=["generating", "loading"])
@pytest.mark.parametrize("seconds", [0.0, 0.02, 0.1])
def test_the_interpreter_ends_while_a_daemon_thread_works(
    script: str, seconds: float, quick_checkpoint: Path
) -> None:
    python = [sys.executable, "-c", script]
    done = run(quick_checkpoint, str(seconds), command=python)
    assert (done.returncode, done.stdout, done.stderr) == (7, "", "")


def test_the_core_refuses_work_once_the_interpreter_ends(quick_checkpoint: Path) -> None:
    """What is registered before the package is imported runs after its own end."""
    script = """
import atexit, sys

def speak():
    try:
        tts.speech_tokens("Hello.")
    except nightingale.Error as error:
        print(error)

atexit.register(speak)
import nightingale
tts = nightingale.load(sys.argv[1], device="cpu")
"""
    done = run(quick_checkpoint, command=[sys.executable, "-c", script])
    assert (done.returncode, done.stdout) == (0, "the interpreter is ending\n")
