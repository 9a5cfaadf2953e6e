"""Voices of recordings that were cloned on the fly, kept by what is in the recording."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ._core import Error
from .checkpoint import Checkpoint
from .quantized_cache import source_identity
from .user_folders import user_folder
from .voice import Voice

MOST = 100  # voices that are kept; the least recently made ones go


def cache_folder() -> Path:
    """Where they are kept; all of them can be made again."""
    return user_folder("Caches", "XDG_CACHE_HOME", ".cache") / "voices"


def cloned_voice(
    recording: str | Path, checkpoint: Checkpoint, bake: Callable[[Path], Voice]
) -> Voice:
    """The voice of a recording: the one that was kept, else what `bake` makes of it with this
    checkpoint."""
    recording = Path(recording)
    try:
        kept = cache_folder() / f"{_key(recording, checkpoint)}.safetensors"
    except OSError as error:
        raise Error(f"cannot read {recording}: {error.strerror}") from error
    with suppress(Error):  # it is not there, or damaged
        return Voice.load(kept)
    voice = bake(recording)
    with suppress(OSError, Error):  # a disk that is full or cannot be written keeps nothing
        kept.parent.mkdir(parents=True, exist_ok=True)
        voice.save(kept)
        _tidy(kept.parent)
    return voice


def _key(recording: Path, checkpoint: Checkpoint) -> str:
    """Of the recording's content, and of the files that make a voice of it."""
    content = hashlib.sha256(recording.read_bytes())
    for part in (checkpoint.voice_encoder, checkpoint.s3gen):
        if part is not None:
            content.update(repr(sorted(source_identity(part).items())).encode())
    return content.hexdigest()[:32]


def _tidy(folder: Path) -> None:
    by_age = sorted(folder.glob("*.safetensors"), key=lambda file: file.stat().st_mtime)
    for file in by_age[:-MOST]:
        file.unlink(missing_ok=True)
