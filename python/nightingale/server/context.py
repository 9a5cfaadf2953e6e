"""What the routes share: settings, engine, metrics and the voices that clients can name."""

from __future__ import annotations

import ipaddress
import re
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from .._core import Error
from ..options import LoadOptions, ServerOptions
from ..text.lexicon import Lexicon
from ..voice import Voice
from ..voice_folder import VoiceFolder, find_titled
from .errors import ApiError, api_error
from .jobs import EngineThread, Job, QueueFullError, Work
from .metrics import Metrics
from .recordings import RecordingReader
from .throttle import Throttle
from .voice_names import OPENAI_VOICES, own_name, read_aliases

MODEL_NAME = "nightingale"
_MACHINE_FOLDERS = (Path.home(), Path(tempfile.gettempdir()), Path(__file__).parents[2])
ENDING = "nightingale.ending"  # a WebSocket's extension: its "event" is set when the server ends
ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s]+", re.IGNORECASE)
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, kw_only=True)
class Settings(ServerOptions):
    """What a server speaks with, whom it answers, and what it allows."""

    model: str | None = None  # as `nightingale.load` takes it
    load: LoadOptions = LoadOptions()
    key: str | None = None  # that clients must show
    hosts: tuple[str, ...] | None = LOOPBACK_NAMES  # names clients may call it by; None: any
    any_address: bool = False  # whether clients may also call it by any IP address
    trusted_proxies: tuple[str, ...] = ()  # addresses whose X-Forwarded-For names the client
    allowed_origins: tuple[str, ...] = ()  # of other sites whose pages may use it; "*": all
    access_log: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        # Read here: a bad file is told at the start, and other processes get what is in it.
        object.__setattr__(self, "lexicon", Lexicon.of(self.lexicon))
        for proxy in self.trusted_proxies:
            ipaddress.ip_network(proxy)
        for origin in self.allowed_origins:
            if origin != "*" and not ORIGIN.fullmatch(origin):
                raise ValueError(
                    f"an origin is written like https://example.com:8000, or *, not {origin!r}"
                )
        _ = self.aliases
        if self.key is not None and (len(self.key) < 8 or not self.key.isascii()):
            raise ValueError("a key must have 8 ASCII characters or more")

    @property
    def aliases(self) -> dict[str, str]:
        """Voices by other names, which are in lower case."""
        return read_aliases(self.alias)


@lru_cache(maxsize=32)
def _load_voice(file: Path, modified: int, size: int) -> Voice:
    """A voice of the folder, which is read again when its file has changed."""
    return Voice.load(file)


@dataclass(frozen=True)
class Server:
    """One server: its settings, engine, voices and counts."""

    settings: Settings
    engine: EngineThread
    voices: VoiceFolder
    metrics: Metrics
    # Text takes pure Python up to a second, for which the engine's thread has no time.
    text_threads: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(4, thread_name_prefix="text")
    )
    recordings: RecordingReader = field(default_factory=RecordingReader)
    throttle: Throttle = field(default_factory=Throttle)  # of WebSockets

    def submit(self, connection: HTTPConnection, work: Work) -> Job:
        """Puts work in the queue under the client's address; ApiError where it is full."""
        return self.submit_for(connection.client.host if connection.client else "", work)

    def submit_for(self, client: str, work: Work) -> Job:
        """Puts work in the queue for the client of an address."""
        job = Job(client, work)
        try:
            self.engine.submit(job)
        except Exception as error:
            raise self.told(error) from error
        return job

    def told(self, error: Exception, param: str | None = None) -> ApiError:
        """What the client hears of an error; `param` names the part of the request at fault."""
        if isinstance(error, QueueFullError):
            self.metrics.refused.inc()
        return api_error(error, self.engine.retry_after(), param, self._folders)

    @cached_property
    def _aliases(self) -> dict[str, str]:
        return self.settings.aliases

    @cached_property
    def _folders(self) -> list[str]:
        """What clients are not told of, longest first."""
        model = [Path(self.settings.model)] if self.settings.model else []
        named = [folder.parent for folder in (*model, self.voices.folder)]
        folders = {*named, *(folder.absolute() for folder in named), *_MACHINE_FOLDERS}
        paths = {str(folder) for folder in folders if len(folder.parts) > 1}
        return sorted(paths, key=len, reverse=True)

    def voice_name(self, asked: str, own: Sequence[str]) -> str:
        """The name that an alias or a title stands for; others are what they are. `own` are the
        model's voices."""
        name = self._aliases.get(asked.casefold(), asked)
        if own_name(name, own) is not None:
            return name
        with suppress(Error):  # the folder cannot be read
            return find_titled(name, own, self.voices) or name
        return name

    def find_voice(self, name: str | None, own: Sequence[str]) -> str | Voice | None:
        """What `nightingale` takes for a name; `own` are the model's voices."""
        if name is None:
            return None
        asked, name = name, self.voice_name(name, own)
        if (found := own_name(name, own)) is not None:
            return found
        try:
            file = self.voices.path(name)
            if file.is_file():
                state = file.stat()
                return _load_voice(file, state.st_mtime_ns, state.st_size)
        except (ValueError, Error, OSError):
            pass  # no name of a voice, or one that was deleted this moment
        if (named := OPENAI_VOICES.get(name.casefold())) is not None:
            return named if named in own else None
        known = ", ".join([*own, *self.voices.names()]) or "none"
        alias = "" if asked == name else f" (alias {asked!r})"
        message = f"there is no voice {name!r}{alias}; there are: {known}"
        raise ApiError(400, message, param="voice", code="voice_not_found")


def _server(connection: HTTPConnection) -> Server:
    return cast(Server, connection.app.state.server)


ServerContext = Annotated[Server, Depends(_server)]
