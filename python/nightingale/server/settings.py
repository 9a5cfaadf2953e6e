"""How a server is set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..voice_folder import default_voice_folder

MODEL_NAME = "nightingale"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class Settings:
    """What a server speaks with and what it allows. Seconds, bytes and counts."""

    model: str | None = None  # as `nightingale.load` takes it
    load: Mapping[str, Any] = field(default_factory=dict)  # its other arguments
    voices: Path = field(default_factory=default_voice_folder)
    key: str | None = None  # that clients must show
    hosts: tuple[str, ...] | None = LOOPBACK_NAMES  # names clients may call it by; None: any
    queue: int = 32  # requests that may wait
    running: int = 4  # requests that take turns
    max_characters: int = 10_000  # of a text
    max_upload: int = 20_000_000  # bytes of a recording
    max_voices: int = 1000  # in the folder, beyond which none is added
    first_sound_timeout: float = 60.0  # until a request's first sound
    stall_timeout: float = 60.0  # that a client may leave bytes unsent or untaken
    socket_timeout: float = 300.0  # that a WebSocket may be silent with nothing to say
    unload_after: float | None = None  # of idleness

    def __post_init__(self) -> None:
        if self.key is not None and (len(self.key) < 8 or not self.key.isascii()):
            raise ValueError("a key must have 8 ASCII characters or more")
        for name in ("queue", "running", "max_characters", "max_upload", "max_voices"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        for name in ("first_sound_timeout", "stall_timeout", "socket_timeout", "unload_after"):
            seconds = getattr(self, name)
            if seconds is not None and not seconds > 0:
                raise ValueError(f"{name} must be above 0 s, not {seconds}")
