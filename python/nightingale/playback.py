"""Plays whole sounds: through sounddevice, else with a player that the system has."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ._core import Error
from .audio_writer import audio_writer

# Commands that play a WAV file, the first that is there is taken.
PLAYERS = (
    ("afplay",),
    ("pw-play",),
    ("paplay",),
    ("aplay", "-q"),
    ("ffplay", "-nodisp", "-autoexit", "-loglevel", "error"),
)


def play(samples: np.ndarray, sample_rate: int) -> None:
    """Plays mono samples and returns when they were heard; an Error where nothing can play."""
    reason = _play_with_sounddevice(samples, sample_rate)
    if reason is None:
        return
    player = next((command for command in PLAYERS if shutil.which(command[0])), None)
    if player is None:
        names = ", ".join(command[0] for command in PLAYERS)
        raise Error(f"cannot play: {reason}, and none of {names} is installed")
    with tempfile.TemporaryDirectory(prefix="nightingale-") as folder:
        file = Path(folder) / "speech.wav"
        with audio_writer(file, sample_rate) as write:
            write(samples)
        done = subprocess.run([*player, str(file)], capture_output=True, text=True, check=False)
    if done.returncode:
        told = done.stderr.strip().splitlines()
        raise Error(f"cannot play: {player[0]} failed: {told[-1] if told else done.returncode}")


def _play_with_sounddevice(samples: np.ndarray, sample_rate: int) -> str | None:
    """None once it was played, else why it cannot be."""
    try:
        import sounddevice
    except ModuleNotFoundError:
        return "sounddevice is not installed (pip install 'nightingale-tts[playback]')"
    except OSError as error:  # PortAudio is missing
        return str(error)
    try:
        sounddevice.play(samples, sample_rate, blocking=True)
    except sounddevice.PortAudioError as error:
        if sys.platform == "darwin":  # it has no other way to a device that this one cannot open
            raise Error(f"cannot play: {error}") from error
        return str(error)
    return None
