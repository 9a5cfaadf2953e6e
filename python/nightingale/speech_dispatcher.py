"""A module of Speech Dispatcher: its protocol over standard input and output.

Speech Dispatcher starts `sd_nightingale CONFIG`, asks for speech line by line, and plays the
samples that come back, so that it stops them at once when a screen reader goes on.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import BinaryIO

import numpy as np

from . import __version__
from ._core import Error
from .audio import SAMPLE_RATE
from .checkpoint import known_language
from .loading import load
from .native_voices import native_language, native_voice
from .options import SPEEDS, SpeechOptions
from .tts import TTS
from .voice import Voice
from .voice_folder import VoiceFolder, find_named_voice

SPEECH_COMMANDS = ("SPEAK", "CHAR", "KEY")
_TAG = re.compile(r"<[^<>]*>")
_SPOKEN = re.compile(r"\w")
ESCAPE, INVERT = 0x7D, 0x20  # a line's end and ESCAPE itself are sent as ESCAPE and another byte


def escaped(data: bytes) -> bytes:
    """Bytes without a line's end, as Speech Dispatcher reads them."""
    for byte in (ESCAPE, ord("\n")):
        data = data.replace(bytes([byte]), bytes([ESCAPE, byte ^ INVERT]))
    return data


def plain(message: str) -> str:
    """The text of a message, which comes with SSML's marks around it."""
    return unescape(_TAG.sub(" ", message)).strip()


def read_config(file: Path) -> dict[str, str]:
    """Lines `Name value` of a configuration file, by name in lower case."""
    found = {}
    for line in file.read_text("utf-8").splitlines():
        words = line.split(None, 1)
        if len(words) == 2 and not line.lstrip().startswith("#"):
            found[words[0].lower()] = words[1].strip().strip('"')
    return found


@dataclass
class Speaker:
    """What Speech Dispatcher has set, and what that means to the model."""

    tts: TTS
    folder: VoiceFolder = field(default_factory=VoiceFolder)
    settings: dict[str, str] = field(default_factory=dict)

    def voices(self) -> Iterator[tuple[str, str]]:
        """Voices with a language each; those without a native one speak all of the model's."""
        for name in (*self.tts.voices, *self.folder.names()):
            native = native_language(name)
            for language in self.tts.languages if native is None else (native,):
                yield name, language

    def options(self) -> SpeechOptions:
        language = self._language()
        rate = float(self.settings.get("rate", "0"))
        speed = SPEEDS[1] ** (min(max(rate, -100), 100) / 100)
        return SpeechOptions(voice=self._voice(language), language=language, speed=speed)

    @property
    def gain(self) -> float:
        """Of the volume, -100 to 100; the highest is the sound as it is."""
        return min(max((float(self.settings.get("volume", "100")) + 100) / 200, 0.0), 1.0)

    def _language(self) -> str:
        try:
            return known_language(self.settings.get("language", "en"), self.tts.languages)
        except ValueError:
            return "en" if "en" in self.tts.languages else next(iter(self.tts.languages))

    def _voice(self, language: str) -> str | Voice | None:
        name = self.settings.get("synthesis_voice", "NULL")
        if name != "NULL":
            try:
                return find_named_voice(name, self.tts.voices, self.folder)
            except (ValueError, Error):
                pass  # of another module, perhaps
        return self._of_type(language, self.settings.get("voice_type", "").lower())

    def _of_type(self, language: str, kind: str) -> str | None:
        """A native voice of a type such as male1; None: the language's default."""
        sex = next((sex for sex in ("male", "female") if kind.startswith(sex)), None)
        return None if sex is None else native_voice(self.tts.voices, language, sex)


class Module:
    """One module: commands come from `lines`, answers, events and sound go to `out`."""

    def __init__(self, lines: Iterator[str], out: BinaryIO, open_model: Callable[[], TTS]) -> None:
        self._lines = lines
        self._out = out
        self._open_model = open_model
        self._speaker: Speaker | None = None
        self._settings: dict[str, str] = {}
        self._lock = threading.Lock()  # of `out`, and of which message is the current one
        self._current = 0  # the message that is being spoken; 0: none
        self._messages = 0
        self._thread: threading.Thread | None = None

    def run(self) -> None:
        for line in self._lines:
            if line == "QUIT":
                self._end("703 STOP")
                self._answer("210 OK QUIT")
                return
            self._obey(line)

    def _obey(self, line: str) -> None:
        if line == "INIT":
            self._init()
        elif line in SPEECH_COMMANDS:
            self._speak(line)
        elif line == "SOUND_ICON":
            self._answer("202 OK RECEIVING MESSAGE")
            list(self._message())
            self._answer("301 ERROR CANT SPEAK")
        elif line == "STOP":
            self._end("703 STOP")
        elif line == "PAUSE":
            self._end("704 PAUSE")
        elif line == "LIST VOICES":
            self._list_voices()
        elif line in ("SET", "AUDIO", "LOGLEVEL"):
            self._set(line)
        elif line.startswith("DEBUG"):
            self._answer(f"200 OK DEBUGGING {line.partition(' ')[2].partition(' ')[0]}")
        else:
            self._answer("300 ERR UNKNOWN COMMAND")

    def _init(self) -> None:
        try:
            self._speaker = Speaker(self._open_model(), settings=self._settings)
        except (Error, ValueError, OSError) as error:
            reason = " ".join(str(error).split())
            self._answer(f"399-{reason}", "399 ERR CANT INIT MODULE")
        else:
            about = f"299-Nightingale {__version__}"
            self._answer(about, "299 OK LOADED SUCCESSFULLY")

    def _list_voices(self) -> None:
        found = list(self._speaker.voices()) if self._speaker else []
        if found:
            listed = (f"200-{name}\t{language}\tnone" for name, language in found)
            self._answer(*listed, "200 OK VOICE LIST SENT")
        else:
            self._answer("304 CANT LIST VOICES")

    def _set(self, command: str) -> None:
        kind = "" if command == "SET" else f"{command} "
        self._answer(f"207 OK RECEIVING {kind}SETTINGS")
        given = dict(line.partition("=")[::2] for line in self._message())
        if not _is_served(command, given):
            self._answer("303 ERROR INVALID PARAMETER OR VALUE")
        else:
            if command == "SET":
                self._settings.update(given)
            done = {"SET": "SETTINGS RECEIVED", "AUDIO": "AUDIO INITIALIZED"}
            self._answer(f"203 OK {done.get(command, 'LOGLEVEL SET')}")

    def _message(self) -> Iterator[str]:
        """The lines up to one with a dot alone."""
        for line in self._lines:
            if line == ".":
                return
            yield line[1:] if line.startswith(".") else line

    def _speak(self, command: str) -> None:
        self._answer("202 OK RECEIVING MESSAGE")
        text = plain("\n".join(self._message()))
        if command == "KEY":
            text = text.replace("_", " ")
        if self._speaker is None or not text:
            self._answer("301 ERROR CANT SPEAK")
            return
        self._end("703 STOP")
        if self._thread is not None:
            self._thread.join()  # its step, at most
        options = self._speaker.options()
        with self._lock:
            self._messages += 1
            number = self._current = self._messages
        self._answer("200 OK SPEAKING")
        arguments = (number, text, options, self._speaker.gain)
        self._thread = threading.Thread(target=self._say, args=arguments, daemon=True)
        self._thread.start()

    def _say(self, number: int, text: str, options: SpeechOptions, gain: float) -> None:
        """Sends the sound of a message, until it is no longer the current one."""
        assert self._speaker is not None
        self._event(number, b"701 BEGIN\n")
        try:
            spoken = self._speaker.tts.stepwise(text, options) if _SPOKEN.search(text) else ()
            for chunk in spoken:
                if self._current != number:
                    return
                if chunk is not None and len(chunk.samples):
                    self._event(number, _audio(gain * chunk.samples))
        except (Error, ValueError) as error:
            print(f"sd_nightingale: {error}", file=sys.stderr)
        self._event(number, b"702 END\n", last=True)

    def _event(self, number: int, data: bytes, last: bool = False) -> None:
        with self._lock:
            if self._current == number:
                self._out.write(data)
                self._out.flush()
                self._current = 0 if last else number

    def _end(self, told: str) -> None:
        """Ends what is being spoken. That is told at once, whatever the model still does."""
        with self._lock:
            if self._current:
                self._current = 0
                self._out.write(told.encode() + b"\n")
                self._out.flush()

    def _answer(self, *lines: str) -> None:
        with self._lock:
            self._out.write("".join(f"{line}\n" for line in lines).encode())
            self._out.flush()


def _is_served(command: str, given: Mapping[str, str]) -> bool:
    """Whether settings are such that the module can follow them."""
    if command == "AUDIO":  # it is Speech Dispatcher that plays
        return given.get("audio_output_method", "server") == "server"
    numbers = (given.get(name, "0") for name in ("rate", "volume"))
    return command != "SET" or all(re.fullmatch(r"[+-]?[0-9]{1,4}", each) for each in numbers)


def _audio(samples: np.ndarray) -> bytes:
    """The event that brings samples."""
    scaled: np.ndarray = np.rint(np.clip(samples, -1, 1) * 32767)
    facts = {
        "bits": 16,
        "num_channels": 1,
        "sample_rate": SAMPLE_RATE,
        "num_samples": len(samples),
        "big_endian": 0,
    }
    head = "".join(f"705-{name}={value}\n" for name, value in facts.items())
    data = escaped(scaled.astype("<i2").tobytes())
    return head.encode() + b"705-AUDIO\0" + data + b"\n705 AUDIO\n"


def main() -> int:
    """`sd_nightingale [CONFIG]`. `Model` in the configuration names a model."""
    config = Path(sys.argv[1]) if len(sys.argv) > 1 else None

    def open_model() -> TTS:
        found = read_config(config) if config is not None and config.is_file() else {}
        return load(found.get("model"), progress=False)

    incoming = (line.decode("utf-8", "replace").rstrip("\n") for line in sys.stdin.buffer)
    Module(incoming, sys.stdout.buffer, open_model).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
