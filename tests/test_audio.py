"""What an Audio shows of itself, and how it is played."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import soundfile

from nightingale import Audio, Error, playback

SAMPLES = (0.3 * np.sin(2 * np.pi * 440 / 24000 * np.arange(12000))).astype(np.float32)
TOKENS = np.zeros(12, np.int32)


class PortAudioError(Exception):
    """sounddevice's."""


def with_sounddevice(monkeypatch: pytest.MonkeyPatch, play: Any) -> None:
    module = ModuleType("sounddevice")
    module.play, module.PortAudioError = play, PortAudioError
    monkeypatch.setitem(sys.modules, "sounddevice", module)


def a_player(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command of this name, the only one that there is."""
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    others = [command for command in playback.PLAYERS if command[0] == name]
    monkeypatch.setattr(playback, "PLAYERS", tuple(others))


def test_sounddevice_plays_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    played = []
    with_sounddevice(
        monkeypatch, lambda samples, rate, blocking: played.append((samples, rate, blocking))
    )
    Audio(SAMPLES, TOKENS).play()
    ((samples, rate, blocking),) = played
    np.testing.assert_array_equal(samples, SAMPLES)
    assert (rate, blocking) == (24000, True)


@pytest.mark.parametrize("missing", ["package", "device"])
def test_a_player_of_the_system_is_the_next_choice(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise PortAudioError("no device")

    if missing == "package":
        monkeypatch.setitem(sys.modules, "sounddevice", None)
    else:
        with_sounddevice(monkeypatch, fail)
        monkeypatch.setattr(sys, "platform", "linux")
    a_player(tmp_path, "aplay", f'[ "$1" = -q ] && cp "$2" {tmp_path}/played.wav', monkeypatch)
    Audio(SAMPLES, TOKENS).play()
    found, rate = soundfile.read(tmp_path / "played.wav", dtype="float32")
    assert rate == 24000
    np.testing.assert_allclose(found, SAMPLES, rtol=0, atol=1.01 / 32768)


def test_what_keeps_it_from_playing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    a_player(tmp_path, "aplay", "echo 'no such card' >&2; exit 1", monkeypatch)
    with pytest.raises(Error, match=r"^cannot play: aplay failed: no such card$"):
        Audio(SAMPLES, TOKENS).play()
    monkeypatch.setattr(playback, "PLAYERS", (("no-such-player",),))
    with pytest.raises(Error, match=r"sounddevice is not installed.* none of no-such-player is"):
        Audio(SAMPLES, TOKENS).play()


def test_a_notebook_shows_a_player() -> None:
    html = Audio(SAMPLES, TOKENS, text="A <b>.")._repr_html_()
    player = r'<audio controls preload="metadata" src="data:audio/wav;base64,(\S+)"></audio>'
    found = re.fullmatch(f"{player}<div>(.*)</div>", html)
    samples, _ = soundfile.read(io.BytesIO(base64.b64decode(found[1])), dtype="float32")
    np.testing.assert_allclose(samples, SAMPLES, rtol=0, atol=1.01 / 32768)
    assert found[2] == "Audio(&#x27;A &lt;b&gt;.&#x27;, 0.50 s, 12 tokens)"


def test_a_long_sound_is_compressed_in_a_notebook() -> None:
    html = Audio(np.tile(SAMPLES, 140), TOKENS)._repr_html_()
    assert 'src="data:audio/mpeg;base64,' in html
    assert len(html) < 70 * 48000 / 4


def test_a_repr_says_what_is_spoken() -> None:
    assert repr(Audio(SAMPLES, TOKENS)) == "Audio(0.50 s, 12 tokens)"
    told = repr(Audio(SAMPLES, TOKENS, text="The nightingale sings at night. " * 9))
    assert told == "Audio('The nightingale sings at night. The nig…', 0.50 s, 12 tokens)"


@pytest.mark.nightly
def test_a_notebook_that_is_run_has_a_player(tmp_path: Path) -> None:
    pytest.importorskip("nbclient", reason="pip install nbclient ipykernel")
    import nbclient
    import nbformat

    cell = "import nightingale\ntts = nightingale.load()\ntts.generate('Hello there.', seed=1)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    # The kernel of this environment, whatever others are installed for the user.
    subprocess.run(
        [sys.executable, "-m", "ipykernel", "install", "--name", "here", "--prefix", tmp_path],
        check=True,
        capture_output=True,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(tmp_path / "share" / "jupyter"))
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="here").execute()
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "execute_result"
    assert output.data["text/html"].startswith('<audio controls preload="metadata" src="data:')
    assert output.data["text/plain"].startswith("Audio('Hello there.', ")
