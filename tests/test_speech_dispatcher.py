"""The module of Speech Dispatcher: its protocol, and Debian's speech-dispatcher with spd-say."""

from __future__ import annotations

import io
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale.options import SPEEDS
from nightingale.speech_dispatcher import Module, Speaker, escaped, plain, read_config
from nightingale.voice_folder import VoiceFolder

from .command import PATIENCE
from .serving import pcm, until


class Answers(io.RawIOBase):
    """Where a module writes."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)


class Dispatcher:
    """What Speech Dispatcher is to a module."""

    def __init__(self, tts: nightingale.TTS) -> None:
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.answers = Answers()
        module = Module(iter(self._lines.get, None), self.answers, lambda: tts)
        self._thread = threading.Thread(target=module.run, daemon=True)
        self._thread.start()

    def send(self, *lines: str) -> None:
        for line in lines:
            self._lines.put(line)

    def wait_for(self, line: bytes) -> bytes:
        """What has come up to a line, which is then forgotten."""
        until(lambda: line + b"\n" in self.answers.data)
        before, _, rest = self.answers.data.partition(line + b"\n")
        self.answers.data = rest
        return before

    def quit(self) -> None:
        self.send("QUIT")
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@pytest.fixture
def dispatcher(quick_tts: nightingale.TTS) -> Iterator[Dispatcher]:
    found = Dispatcher(quick_tts)
    found.send("INIT")
    found.wait_for(b"299 OK LOADED SUCCESSFULLY")
    yield found
    found.quit()


def sound(events: bytes) -> bytes:
    """The samples of all audio events."""
    found = b""
    for event in events.split(b"705-bits=16\n")[1:]:
        head, _, rest = event.partition(b"705-AUDIO\0")
        data = rest.partition(b"\n705 AUDIO")[0]
        assert b"\n" not in data
        parts = data.split(b"\x7d")
        data = parts[0] + b"".join(bytes([part[0] ^ 0x20]) + part[1:] for part in parts[1:])
        facts = dict(line[4:].split(b"=") for line in head.splitlines())
        assert facts[b"num_samples"] == str(len(data) // 2).encode()
        assert facts[b"sample_rate"] == b"24000"
        found += data
    return found


def test_samples_have_no_line_end() -> None:
    assert escaped(b"a\n}b") == b"a\x7d\x2a\x7d\x5db"


def test_messages_are_read_without_their_marks() -> None:
    message = '<speak>Fish &amp; chips <mark name="__spd_0"/>&lt;now&gt;</speak>'
    assert plain(message) == "Fish & chips  <now>"


def test_a_message_is_spoken(dispatcher: Dispatcher, quick_tts: nightingale.TTS) -> None:
    dispatcher.send("AUDIO", "audio_output_method=server", ".")
    assert dispatcher.wait_for(b"203 OK AUDIO INITIALIZED") == b"207 OK RECEIVING AUDIO SETTINGS\n"
    dispatcher.send("SPEAK", "<speak>Hi.</speak>", ".")
    assert dispatcher.wait_for(b"200 OK SPEAKING") == b"202 OK RECEIVING MESSAGE\n"
    events = dispatcher.wait_for(b"702 END")
    assert events.startswith(b"701 BEGIN\n705-bits=16\n")
    expected = np.concatenate([chunk.samples for chunk in quick_tts.stream("Hi.")])
    assert sound(events) == pcm(expected)


def test_what_has_no_sound_begins_and_ends(dispatcher: Dispatcher) -> None:
    dispatcher.send("CHAR", "..", ".")
    assert dispatcher.wait_for(b"702 END").endswith(b"200 OK SPEAKING\n701 BEGIN\n")


def test_stop_is_answered_at_once_and_the_next_message_is_spoken(dispatcher: Dispatcher) -> None:
    dispatcher.send("SPEAK", "This will not be heard to its end. " * 8, ".")
    dispatcher.wait_for(b"701 BEGIN")
    began = time.monotonic()
    dispatcher.send("STOP")
    dispatcher.wait_for(b"703 STOP")
    assert time.monotonic() - began < 5  # 50 ms where the machine has nothing else to do
    dispatcher.send("KEY", "control_a", ".")
    events = dispatcher.wait_for(b"702 END")
    assert b"703" not in events
    assert len(sound(events)) > 4800


def test_settings_choose_rate_volume_voice_and_language(quick_tts: nightingale.TTS) -> None:
    speaker = Speaker(quick_tts, settings={"rate": "50", "language": "es-MX", "volume": "0"})
    options = speaker.options()
    assert options.speed == pytest.approx(SPEEDS[1] ** 0.5)
    assert (options.language, options.voice, speaker.gain) == ("es", None, 0.5)
    speaker.settings.update(rate="-100", synthesis_voice="default", language="tlh")
    options = speaker.options()
    assert options.speed == pytest.approx(1 / SPEEDS[1])
    assert (options.language, options.voice) == ("en", "default")


def test_types_of_voices_are_native_ones(tmp_path: Path) -> None:
    speaker = Speaker(nightingale.load(), VoiceFolder(tmp_path), {"voice_type": "MALE1"})
    assert speaker.options().voice == "am_michael"
    speaker.settings["language"] = "es"
    assert speaker.options().voice == "em_alex"
    speaker.settings["language"] = "fr"
    assert speaker.options().voice == "ff_siwis"  # there is no other
    assert ("im_nicola", "it") in list(speaker.voices())
    assert ("im_nicola", "en") not in list(speaker.voices())


def test_bad_settings_and_commands_are_told(dispatcher: Dispatcher) -> None:
    dispatcher.send("SET", "rate=fast", ".")
    dispatcher.wait_for(b"303 ERROR INVALID PARAMETER OR VALUE")
    dispatcher.send("AUDIO", "audio_output_method=alsa", ".")
    dispatcher.wait_for(b"303 ERROR INVALID PARAMETER OR VALUE")
    dispatcher.send("SING")
    dispatcher.wait_for(b"300 ERR UNKNOWN COMMAND")
    dispatcher.send("SPEAK", ".")
    dispatcher.wait_for(b"301 ERROR CANT SPEAK")
    dispatcher.send("SOUND_ICON", "bell", ".")
    dispatcher.wait_for(b"301 ERROR CANT SPEAK")
    dispatcher.send("LIST VOICES")
    listed = dispatcher.wait_for(b"200 OK VOICE LIST SENT")
    assert b"200-default\tes\tnone\n" in listed


def test_a_model_that_is_not_there_is_told() -> None:
    answers = Answers()

    def fail() -> nightingale.TTS:
        raise ValueError("there is\nno model")

    Module(iter(["INIT", "LIST VOICES", "QUIT"]), answers, fail).run()
    told = answers.data.decode().splitlines()
    assert told[:2] == ["399-there is no model", "399 ERR CANT INIT MODULE"]
    assert told[2:] == ["304 CANT LIST VOICES", "210 OK QUIT"]


def test_the_configuration_names_the_model(tmp_path: Path) -> None:
    file = tmp_path / "nightingale.conf"
    file.write_text('# a remark\nModel "some/model"\n\n  # Model x\n')
    assert read_config(file) == {"model": "some/model"}


@contextmanager
def speech_dispatcher(
    folder: Path, model: Path, module: str = "-m nightingale.speech_dispatcher"
) -> Iterator[dict[str, str]]:
    """Debian's with this module alone, playing to a file; the environment of its clients. module:
    what Python starts."""
    (folder / "modules").mkdir(parents=True)
    start = folder / "sd_nightingale"
    start.write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
    start.chmod(0o755)
    (folder / "modules" / "nightingale.conf").write_text(f"Model {model}\n")
    (folder / "speechd.conf").write_text(
        f'LogLevel 3\nLogDir "{folder}"\nAudioOutputMethod "alsa"\nAudioALSADevice "default"\n'
        f'AddModule "nightingale" "{start}" "nightingale.conf"\nDefaultModule nightingale\n'
        'DefaultLanguage "en"\n'
    )
    (folder / ".asoundrc").write_text(
        'pcm.!default { type file slave.pcm "null" format "raw" '
        f'file "{folder}/sound.raw" }}\npcm.null {{ type null }}\n'
    )
    address = folder / "socket"
    environment = {**os.environ, "HOME": str(folder), "SPEECHD_ADDRESS": f"unix_socket:{address}"}
    process = subprocess.Popen(
        ["speech-dispatcher", "-s", "-t", "0", "-C", str(folder), "-c", "unix_socket", "-S",
         str(address), "-L", str(folder), "-P", str(folder / "pid")],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until(address.exists)
        yield environment
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("spd-say"), reason="Debian's speech-dispatcher is not there")
def test_spd_say_speaks_cancels_and_lists(quick_checkpoint: Path, tmp_path: Path) -> None:
    with speech_dispatcher(tmp_path / "d", quick_checkpoint) as environment:

        def say(*words: str) -> str:
            command = ["spd-say", *words]
            return subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=True,
            ).stdout

        raw = tmp_path / "d" / "sound.raw"
        assert "default" in say("-L")
        say("-w", "Hi.")
        size = raw.stat().st_size
        assert size > 4800
        say("-w", "-r", "60", "-y", "default", "-l", "es", "Hi.")
        assert size + 2400 < raw.stat().st_size
        say("This will not be heard to its end. " * 8)
        say("-C")
        say("-w", "Hi.")  # spoken as soon as what was cancelled has ended
