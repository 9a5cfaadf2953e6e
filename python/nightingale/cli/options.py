"""Options that several commands share, and what they mean to the package."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..checkpoint import Checkpoint
from ..hub import find_model
from ..option import Option, Options, options_of
from ..options import LoadOptions, ServerOptions, SpeechOptions
from ..sound_file import is_recording
from ..tts import TTS
from ..voice import Voice
from ..voice_cache import cloned_voice
from ..voice_folder import VoiceFolder, find_voice

# Stages of options: how a stream is divided, what speech tokens do not depend on, and how a text is
# written, which is for commands that speak it.
CHUNKS, SOUND, MARKUP = "chunks", "sound", "text"
# The option of files by how their names end.
MARKUP_FILES = {
    ".ssml": "ssml",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}


class Arguments(argparse.Namespace):
    """The arguments of a command, and what those that commands share stand for."""

    def given(self, kind: type[Options]) -> dict[str, Any]:
        """The options of a class that were given; the rest is left to its defaults."""
        named = {each.name: getattr(self, each.name, None) for each in options_of(kind, "cli")}
        return {name: value for name, value in named.items() if value is not None}

    def load_options(self, **changed: Any) -> LoadOptions:
        return LoadOptions(**{"progress": on_terminal(), **self.given(LoadOptions), **changed})

    def load_model(self, **changed: Any) -> TTS:
        from .. import load

        return load(self.model, self.load_options(**changed))

    def find_checkpoint(self) -> Checkpoint:
        """The files of the model, which is not loaded."""
        variant = getattr(self, "variant", None)
        return find_model(self.model, bool(self.offline), on_terminal(), variant)

    def speech_options(self, tts: TTS, **defaults: Any) -> SpeechOptions:
        """What was asked for, with the voice found; defaults: of what was not."""
        asked = defaults | self.given(SpeechOptions) | self._markup()
        if "voice" in asked:
            asked["voice"] = self._voice(asked["voice"], tts)
        return SpeechOptions(**asked)

    def _voice(self, given: str, tts: TTS) -> str | Voice:
        """A voice by name or file; one that is a recording is cloned."""
        folder = VoiceFolder()
        if is_recording(given) and given not in (*tts.voices, *folder.names()):
            return cloned_voice(given, self.find_checkpoint(), tts.bake_voice)
        return find_voice(given, tts.voices, folder)

    def _markup(self) -> dict[str, bool]:
        """What the name of the text's file says about it, unless an option does."""
        names = [each.name for each in options_of(SpeechOptions, "cli") if each.stage == MARKUP]
        told = MARKUP_FILES.get(Path(getattr(self, "file", None) or "").suffix.lower())
        if told is None or any(getattr(self, name, True) is not None for name in names):
            return {}
        return {told: True}

    def read_text(self) -> str:
        """The text of an argument, a file or standard input."""
        if self.file is not None:
            with open(self.file, "rb") as file:
                return _decoded(file.read(), self.file)
        if self.text and self.text != ["-"]:
            return " ".join(self.text)
        if sys.stdin is None or (not self.text and sys.stdin.isatty()):
            raise ValueError(
                "there is no text: give it as an argument, with -f FILE or on standard input"
            )
        return _decoded(sys.stdin.buffer.read(), "standard input")


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not text in UTF-8: see its byte {error.start + 1}") from error


def add_text(
    parser: argparse.ArgumentParser,
    help: str = "what to say, one word or more; - or nothing: standard input",
) -> None:
    group = parser.add_mutually_exclusive_group()
    # With a default it may stand in the group.
    group.add_argument("text", nargs="*", default=[], metavar="TEXT", help=help)
    group.add_argument("-f", "--file", metavar="FILE", help="a text file in UTF-8 to say")


def add_shared(
    parser: argparse.ArgumentParser,
    *,
    json: str | None = "print one JSON object",
    model: bool = True,
    speech: bool = False,
    without: tuple[str, ...] = (CHUNKS,),
    **defaults: Any,
) -> None:
    """Adds the options that commands share: --json with this help, how the model is loaded, and
    how it speaks but for some stages.

    defaults: those that a command has in place of SpeechOptions' own; they are only told here.
    """
    if json is not None:
        parser.add_argument("--json", action="store_true", help=json)
    if model:
        group = parser.add_argument_group("model")
        group.add_argument(
            "--model", help="a checkpoint's folder or a hub id (default: the embedded model)"
        )
        add_options(group, LoadOptions)
    if speech:
        add_options(parser.add_argument_group("speech"), SpeechOptions, without, **defaults)


def add_options(
    group: argparse._ArgumentGroup,
    kind: type[Options],
    without: tuple[str, ...] = (),
    only: Collection[str] | None = None,
    **defaults: Any,
) -> None:
    """Adds what the command line offers of an options class, but for some stages, or only options
    of these names."""
    for option in options_of(kind, "cli"):
        if option.stage not in without and (only is None or option.name in only):
            group.add_argument(option.flag, **_argument(option, defaults.get(option.name)))


def _argument(option: Option, default: Any) -> dict[str, Any]:
    """What argparse takes for an option. None stands for an option that is not given."""
    if option.kind == "bool":
        return {"action": "store_true", "default": None, "help": option.help}
    bounded = option.kind == "float" and option.range[1] is not None
    values = f"; {option.values_text}" if bounded else ""
    told = option.default_text if default is None else default
    repeated: dict[str, Any] = (
        {"action": "append", "metavar": option.metavar} if option.several else {}
    )
    return {
        **repeated,
        "help": f"{option.help}{values} (default: {told})",
        "choices": option.choices or None,
        "type": option.plain_type,
    }


def at_least(least: int, name: str, value: int) -> None:
    if value < least:
        raise ValueError(f"{name} must be {least} or more, not {value}")


def on_terminal() -> bool:
    """Whether someone watches standard error, where progress is shown."""
    return sys.stderr is not None and sys.stderr.isatty()


def progress_bar(shown: bool = True, **settings: Any) -> Any:
    """tqdm's bar, on a terminal only."""
    from tqdm import tqdm

    return tqdm(disable=not (shown and on_terminal()), leave=False, **settings)


def remark(line: str) -> None:
    """One line on standard error, where there is one: print's None would be standard output."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


def one_line(error: Exception) -> str:
    told = str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        told = f"{error.filename}: {error.strerror}"
    return " ".join(told.split()) or type(error).__name__


def in_flags(message: str) -> str:
    """A message of the package with flags in place of the options that it names."""
    return _NAMED.sub(_flag, message)


def _flag(found: re.Match[str]) -> str:
    flag, value = _FLAGS[found["name"]], found["value"]
    return flag if value in (None, "True") else f"{flag} {value[1:-1]}"


def _named_options(flags: Collection[str]) -> re.Pattern[str]:
    """Names with a value, names that are no English word, and the first word of a message about
    it; not what is in a path or in quotes."""
    joined = "|".join(sorted((name for name in flags if "_" in name), key=len, reverse=True))
    return re.compile(
        rf"""(?<![\w./'"=-])
        (?P<name>
            (?:{"|".join(flags)})(?==['"T])
            | (?:{joined})(?![\w/'"-])
            | ^(?:{"|".join(flags)})(?=\ (?:must\ be|is|needs|works)\ )
        )
        (?:=(?P<value>'\w*'|"\w*"|True))?""",
        re.VERBOSE,
    )


_FLAGS = {
    each.name: each.flag
    for kind in (LoadOptions, SpeechOptions, ServerOptions)
    for each in options_of(kind, "cli")
}
_NAMED = _named_options(_FLAGS)


def factor_text(factor: float) -> str:
    """A real-time factor that says whether it is fast or slow."""
    side = "faster" if factor < 1 else "slower"
    return f"real-time factor {factor:.2f} ({side} than real time)"
