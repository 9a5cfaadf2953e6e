"""How a server is set up."""

from __future__ import annotations

from dataclasses import dataclass

from ..options import LoadOptions, ServerOptions

MODEL_NAME = "nightingale"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings(ServerOptions):
    """What a server speaks with, whom it answers, and what it allows."""

    model: str | None = None  # as `nightingale.load` takes it
    load: LoadOptions = LoadOptions()
    key: str | None = None  # that clients must show
    hosts: tuple[str, ...] | None = LOOPBACK_NAMES  # names clients may call it by; None: any

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.key is not None and (len(self.key) < 8 or not self.key.isascii()):
            raise ValueError("a key must have 8 ASCII characters or more")
