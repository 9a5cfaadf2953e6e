"""The voices that clients can name: the model's and the folder's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .._core import Error
from ..voice import Voice
from ..voice_folder import VoiceFolder, voice_name
from .errors import ApiError

# Programs written for OpenAI name these whatever the server has.
OPENAI_VOICES = {
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable", "marin", "nova", "onyx", "sage",
    "shimmer", "verse",
}  # fmt: skip
KEPT = 32  # voices in memory


class KnownVoices:
    """Voices by name. A voice of the folder is read once and again when its file has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = VoiceFolder(folder)
        self._kept: dict[tuple[Path, int, int], Voice] = {}

    def find(self, name: str | None, own: Sequence[str]) -> str | Voice | None:
        """What `nightingale` takes for a name; `own` are the model's voices. For one thread."""
        if name is None or name in own:
            return name
        try:
            file = self.folder.path(voice_name(name))
            if file.is_file():
                return self._load(file)
        except (ValueError, Error):
            pass  # no name of a voice here, so that there is none of that name
        if name in OPENAI_VOICES:
            return None
        known = ", ".join([*own, *self.folder.names()]) or "none"
        raise ApiError(
            400,
            f"there is no voice {name!r}; there are: {known}",
            param="voice",
            code="voice_not_found",
        )

    def _load(self, file: Path) -> Voice:
        state = file.stat()
        key = (file, state.st_mtime_ns, state.st_size)
        if key not in self._kept:
            self._kept[key] = Voice.load(file)
            if len(self._kept) > KEPT:
                del self._kept[next(iter(self._kept))]
        return self._kept[key]
