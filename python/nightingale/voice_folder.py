"""Baked voices kept by name in one folder, which no name can leave."""

from __future__ import annotations

import fcntl
import os
import stat
import unicodedata
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ._core import Error
from .arguments import a_path
from .native_voices import has_title, voice_titled
from .option import counted, shown
from .torch_file import open_tensors
from .user_folders import user_folder
from .voice import Voice

SUFFIX = ".safetensors"
MOST_CHARACTERS = 64
MOST_BYTES = 200  # with the suffix and what a save adds, below the 255 of most disks
WINDOWS_DEVICES = {"CON", "PRN", "AUX", "NUL"} | {
    f"{port}{digit}" for port in ("COM", "LPT") for digit in range(10)
}


class VoiceExistsError(ValueError):
    """There is a voice of this name already."""


class FolderFullError(ValueError):
    """The folder has as many voices as it may."""


def default_voice_folder() -> Path:
    """Where the user's voices are kept unless another folder is named; save creates it."""
    return user_folder("Application Support", "XDG_DATA_HOME", ".local/share") / "voices"


def voice_name(name: str) -> str:
    """The name in Unicode's composed form (NFC); ValueError where the rule forbids it."""
    if not isinstance(name, str):
        raise ValueError(f"a voice name must be a string, not {type(name).__name__}")
    composed = unicodedata.normalize("NFC", name)
    kinds = [unicodedata.category(character)[0] for character in composed]
    spelled = all(
        kind in "LMN" or character in " -_."
        for kind, character in zip(kinds, composed, strict=True)
    )
    if (
        not spelled
        or not composed
        or kinds[0] not in "LN"
        or composed[-1] in " ."
        or len(composed) > MOST_CHARACTERS
        or len(composed.encode()) > MOST_BYTES
        or _device(composed) in WINDOWS_DEVICES
    ):
        raise ValueError(
            f"{name[:MOST_CHARACTERS]!r} cannot name a voice: use 1 to {MOST_CHARACTERS} letters, "
            f"digits, spaces, '-', '_' and '.' (at most {MOST_BYTES} bytes in UTF-8), first a "
            "letter or digit, last no space or '.', and no device name of Windows such as CON"
        )
    return composed


def _device(name: str) -> str:
    """What Windows reads in a name: the part before the first '.', also with COM¹ for COM1."""
    return unicodedata.normalize("NFKC", name.partition(".")[0]).rstrip().upper()


class VoiceFolder:
    """Voices as NAME.safetensors in a folder. Names that differ only in case are one name, as they
    are one file on many disks; links inside the folder are not followed."""

    def __init__(self, folder: str | Path | None = None) -> None:
        """None: the user's own folder."""
        self.folder = default_voice_folder() if folder is None else a_path("folder", folder)

    def __repr__(self) -> str:
        try:
            held = counted(len(self.names()), "voice")
        except Error:
            held = "cannot be read"
        return f"VoiceFolder({str(self.folder)!r}, {held})"

    def names(self) -> list[str]:
        """The names of the voices there, sorted; other files are passed over."""
        return sorted(name for name, file in self._entries().items() if _is_voice(file))

    def path(self, name: str) -> Path:
        """The file of this voice, or where it would be saved."""
        name = voice_name(name)
        entries = self._entries()
        same = [entry for entry in entries if entry.casefold() == name.casefold()]
        spelling = name if name in entries or not same else min(same)
        file = entries.get(spelling, self.folder / f"{name}{SUFFIX}")
        try:
            mode = file.lstat().st_mode
        except FileNotFoundError:
            return file
        if stat.S_ISLNK(mode):
            raise Error(f"{file} is a link; voices are only read and written in their folder")
        if not stat.S_ISREG(mode):
            raise Error(f"{file} is not a file")
        return file

    def load(self, name: str) -> Voice:
        """The voice of this name."""
        return Voice.load(self._existing(name))

    def save(
        self, name: str, voice: Voice, overwrite: bool = False, most: int | None = None
    ) -> Path:
        """Keeps the voice under this name; the file appears whole or not at all. most: voices that
        there may be in the folder."""
        if not isinstance(voice, Voice):
            raise ValueError(f"only a Voice can be saved, not {type(voice).__name__}")
        self.path(name)  # so that no folder is made for a name that cannot be
        self.folder.mkdir(parents=True, exist_ok=True)
        with self._alone():
            file = self.path(name)
            if file.exists() and not overwrite:
                known = file.name.removesuffix(SUFFIX)
                raise VoiceExistsError(
                    f"there is a voice {known!r} already, which is kept unless it is overwritten"
                )
            if most is not None and not file.exists() and len(self.names()) >= most:
                raise FolderFullError(f"there are {most} voices already; delete one first")
            voice.save(file)
        return file

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keeps other threads and processes from saving between a look and a save. The lock ends
        with the process, however it ends."""
        descriptor = os.open(self.folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def remove(self, name: str) -> None:
        """Deletes the voice of this name."""
        self._existing(name).unlink()

    def _existing(self, name: str) -> Path:
        file = self.path(name)
        if not file.exists():
            known = ", ".join(self.names()) or "none"
            raise ValueError(f"unknown voice {name!r}; {self.folder} has {known}")
        return file

    def _entries(self) -> dict[str, Path]:
        """What could be a voice by its file name, by the voice's name."""
        try:
            files = sorted(self.folder.iterdir())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise Error(f"cannot read {self.folder}: {error.strerror}") from error
        entries = {}
        for file in files:
            if file.name.endswith(SUFFIX):
                try:
                    entries[voice_name(file.name.removesuffix(SUFFIX))] = file
                except ValueError:
                    continue
        return entries


def _is_voice(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.lstat().st_mode) and "t3.speaker_emb" in open_tensors(file)
    except (Error, OSError):
        return False


def find_titled(title: str, own: Collection[str], voices: VoiceFolder) -> str | None:
    """The name of the voice, of the model or of the folder, with a title such as "Emma, British
    English, woman"; None: there is none, or several."""
    if ", " not in title:  # every title has it; the folder need not be read
        return None
    entries = voices._entries().items()
    kept = [name for name, file in entries if has_title(name, title) and _is_voice(file)]
    return voice_titled(title, [*own, *kept])


def _titled_voice(title: str, own: Collection[str], voices: VoiceFolder) -> str | Voice | None:
    name = find_titled(title, own, voices)
    return name if name is None or name in own else voices.load(name)


def find_voice(given: str, own: Collection[str], voices: VoiceFolder) -> str | Voice:
    """What `given` stands for: a voice of the model, whose names are `own`, else one of the folder,
    else a voice file's path, else a voice by its title. What cannot be a voice's name, as with a
    separator, is a path."""
    if given in own:
        return given
    files = [Path(given)]
    with suppress(ValueError):
        files.insert(0, voices.path(given))
    for file in files:
        if os.path.isfile(file):  # Path.is_file raises for a name that is too long
            return Voice.load(file)
    if (titled := _titled_voice(given, own, voices)) is not None:
        return titled
    known = ", ".join(own) or "none"
    there = ", ".join(voices.names()) or "none"
    raise ValueError(
        f"unknown voice {shown(given)}: the model has {known}, {voices.folder} has {there}, "
        "and it is not a file"
    )


def find_named_voice(name: str, own: Collection[str], voices: VoiceFolder) -> str | Voice:
    """The same for a name that a text brings, which is never a path."""
    if name in own:
        return name
    # Before the folder's names, none of which can be a title.
    if (titled := _titled_voice(name, own, voices)) is not None:
        return titled
    file = voices.path(name)
    if file.is_file():
        return Voice.load(file)
    known, there = (", ".join(names) or "none" for names in (own, voices.names()))
    raise ValueError(
        f"unknown voice {shown(name)}: the model has {known}, {voices.folder} has {there}"
    )
