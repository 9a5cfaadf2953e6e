"""How sound is put in the body of an answer: as it is, in server-sent events, or in JSON."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ..word_times import Word

StreamFormat = Literal["audio", "sse", "json"]


class Framing:
    """The encoder's bytes as they are. `error` is None where the body just breaks off."""

    def __init__(self, media_type: str) -> None:
        self.media_type = media_type

    def part(self, data: bytes, words: Sequence[Word]) -> bytes:
        """What is sent for more bytes of the encoder, and for words that end in them."""
        return data

    def end(self, facts: Mapping[str, Any]) -> bytes:
        """What is sent after the last part."""
        return b""

    def error(self, told: Mapping[str, Any]) -> bytes | None:
        """What is sent where the work has failed after its first part."""
        return None


class EventFraming(Framing):
    """OpenAI's server-sent events, with the times of words beside the sound."""

    def __init__(self, media_type: str) -> None:
        super().__init__("text/event-stream")
        self._words: list[Word] = []  # that no event has told yet

    def part(self, data: bytes, words: Sequence[Word]) -> bytes:
        self._words += words
        if not data:
            return b""
        audio = base64.b64encode(data).decode()
        return self._event({"type": "speech.audio.delta", "audio": audio})

    def end(self, facts: Mapping[str, Any]) -> bytes:
        return self._event({"type": "speech.audio.done", "usage": facts["usage"]})

    def error(self, told: Mapping[str, Any]) -> bytes:
        return self._event({"type": "error", **told})

    def _event(self, content: dict[str, Any]) -> bytes:
        if self._words:
            content["words"], self._words = self._words, []
        return b"data: " + json.dumps(content).encode() + b"\n\n"


class JsonFraming(Framing):
    """One JSON object that comes in parts: the sound in base64, then the times of its words."""

    def __init__(self, media_type: str) -> None:
        super().__init__("application/json")
        self._begin = f'{{"media_type": {json.dumps(media_type)}, "audio": "'.encode()
        self._rest = b""  # of the sound; base64 takes three bytes at once
        self._words: list[Word] = []

    def part(self, data: bytes, words: Sequence[Word]) -> bytes:
        self._words += words
        data = self._rest + data
        whole = len(data) - len(data) % 3
        self._rest = data[whole:]
        return self._begun() + base64.b64encode(data[:whole])

    def end(self, facts: Mapping[str, Any]) -> bytes:
        return self._close({"words": self._words, **facts})

    def error(self, told: Mapping[str, Any]) -> bytes:
        return self._close({"words": self._words, **told})

    def _close(self, members: dict[str, Any]) -> bytes:
        rest = base64.b64encode(self._rest)
        return self._begun() + rest + b'", ' + json.dumps(members).encode()[1:]

    def _begun(self) -> bytes:
        begin, self._begin = self._begin, b""
        return begin


FRAMINGS: dict[StreamFormat, type[Framing]] = {
    "audio": Framing,
    "sse": EventFraming,
    "json": JsonFraming,
}
