"""The model as tools of the Model Context Protocol (MCP), which assistants call over a pipe."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio
import anyio.to_thread
import numpy as np
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from ._core import Error
from .audio import SAMPLE_RATE
from .audio_writer import audio_format, audio_writer
from .native_voices import title_of
from .options import SPEEDS, SpeechOptions
from .text.detection import AUTO, can_detect
from .tts import TTS
from .voice_folder import VoiceFolder, find_named_voice, voice_name

T = TypeVar("T")
Write = Callable[[np.ndarray], None]
MOST_CHARACTERS = 10_000

Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS, description="what to say")]
VoiceName = Annotated[
    str | None,
    Field(max_length=200, description="a name or title from list_voices; null: the default"),
]
Language = Annotated[
    str | None, Field(max_length=20, description="a code such as en or es-ES; null: the text's own")
]
Speed = Annotated[float, Field(ge=SPEEDS[0], le=SPEEDS[1], description="speaking rate")]
FileName = Annotated[
    str,
    Field(
        max_length=80, description="without a folder, ending in .wav, .flac, .ogg, .mp3 or .opus"
    ),
]


class AbandonedError(Exception):
    """Nobody waits for the speech any more."""


@dataclass(frozen=True)
class Speech:
    """What the tools do, in a thread of their own. folder: the only one that files are written
    to."""

    tts: TTS
    voices: VoiceFolder
    folder: Path
    open_speakers: Callable[[], AbstractContextManager[Write]]

    def speak(self, over: threading.Event, text: str, options: SpeechOptions) -> float:
        """Plays a text; its seconds."""
        with self.open_speakers() as write:
            return self._write(over, text, options, write)

    def make_file(self, over: threading.Event, text: str, options: SpeechOptions, name: str) -> str:
        """Writes a text to a file, whose path it gives."""
        file = self.path(name)
        self.folder.mkdir(parents=True, exist_ok=True)
        with audio_writer(file, SAMPLE_RATE) as write:
            self._write(over, text, options, write)
            if os.path.lexists(file):  # another call was faster
                raise ValueError(f"there is a file {file.name!r} already")
        return str(file)

    def path(self, name: str) -> Path:
        """Where a file of this name is written; ValueError for one that is there, or that is no
        plain name."""
        audio_format(name)
        try:
            file = self.folder / voice_name(name)
        except ValueError:
            raise ValueError(
                f"{name[:80]!r} cannot name a file: use letters, digits, spaces, '-', '_' and '.', "
                "and no folder"
            ) from None
        if os.path.lexists(file):
            raise ValueError(f"there is a file {name!r} already in {self.folder}")
        return file

    def options(self, voice: str | None, language: str | None, speed: float) -> SpeechOptions:
        own = self.tts.voices
        chosen = None if voice is None else find_named_voice(voice, own, self.voices)
        if language is None:
            first = "en" if "en" in self.tts.languages else next(iter(self.tts.languages))
            language = AUTO if can_detect(self.tts.languages) else first
        return SpeechOptions(voice=chosen, language=language, speed=speed)

    def _write(
        self, over: threading.Event, text: str, options: SpeechOptions, write: Write
    ) -> float:
        samples = 0
        with closing(self.tts.stream(text, options)) as chunks:
            for chunk in chunks:
                if over.is_set():
                    raise AbandonedError
                write(chunk.samples)
                samples += len(chunk.samples)
        if not samples:
            raise Error("the model said nothing: try another text")
        return samples / SAMPLE_RATE


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Runs work, which gets an event that is set where the client cancels it."""
    over = threading.Event()
    try:
        return await anyio.to_thread.run_sync(work, over, *arguments, abandon_on_cancel=True)
    except (ValueError, Error, OSError) as error:
        raise ToolError(" ".join(str(error).split())) from error
    finally:
        over.set()


def make_server(speech: Speech) -> MCPServer[Any]:
    """The server with its tools."""
    server: MCPServer[Any] = MCPServer(
        "nightingale",
        version=version("nightingale-tts"),
        instructions="Text-to-speech on the user's machine.",
        log_level="WARNING",
    )
    turns = anyio.Lock()  # two voices at once are not understood

    @server.tool()
    async def speak(
        text: Text, voice: VoiceName = None, language: Language = None, speed: Speed = 1.0
    ) -> str:
        """Says a text aloud on the user's machine; returns when it was heard."""
        options = _chosen(speech, voice, language, speed)
        async with turns:
            seconds = await _in_thread(speech.speak, text, options)
        return f"spoken: {seconds:.1f} s"

    @server.tool()
    async def list_voices() -> dict[str, Any]:
        """The names of the voices, who they are, and the languages that all of them speak."""
        own = [*speech.tts.voices, *await anyio.to_thread.run_sync(speech.voices.names)]
        titles = {name: title_of(name) for name in own}
        return {"voices": own, "titles": titles, "languages": speech.tts.languages}

    @server.tool(description=f"Says a text into a new audio file in {speech.folder}.")
    async def make_file(
        text: Text,
        name: FileName,
        voice: VoiceName = None,
        language: Language = None,
        speed: Speed = 1.0,
    ) -> str:
        options = _chosen(speech, voice, language, speed)
        path = await _in_thread(speech.make_file, text, options, name)
        return f"written: {path}"

    return server


def _chosen(speech: Speech, voice: str | None, language: str | None, speed: float) -> SpeechOptions:
    try:
        return speech.options(voice, language, speed)
    except (ValueError, Error) as error:
        raise ToolError(str(error)) from error
