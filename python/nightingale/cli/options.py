"""Options that several commands share, and what they mean to the package."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..option import Option, Options, options_of
from ..options import LoadOptions, SpeechOptions
from ..tts import TTS

# Stages of options: how a stream is divided, and what speech tokens do not depend on.
CHUNKS, SOUND = "chunks", "sound"


def add_json(parser: argparse.ArgumentParser, help: str = "print one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=help)


def add_options(
    group: argparse._ArgumentGroup,
    kind: type[Options],
    without: tuple[str, ...] = (),
    **defaults: Any,
) -> None:
    """Adds what the command line offers of an options class, but for some stages.

    defaults: those that a command has in place of the class's; they are only told here.
    """
    for option in options_of(kind, "cli"):
        if option.stage not in without:
            group.add_argument(option.flag, **_argument(option, defaults.get(option.name)))


def _argument(option: Option, default: Any) -> dict[str, Any]:
    """What argparse takes for an option. None stands for an option that is not given."""
    if option.kind == "bool":
        return {"action": "store_true", "default": None, "help": option.help}
    bounded = option.kind == "float" and option.range[1] is not None
    values = f"; {option.values_text}" if bounded else ""
    told = option.default_text if default is None else default
    return {
        "help": f"{option.help}{values} (default: {told})",
        "choices": option.choices or None,
        "type": option.plain_type,
    }


def add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", help="a checkpoint's folder or a hub id (default: the embedded model)"
    )
    add_options(group, LoadOptions)


def add_speech_options(
    parser: argparse.ArgumentParser, without: tuple[str, ...] = (CHUNKS,), **defaults: Any
) -> None:
    add_options(parser.add_argument_group("speech"), SpeechOptions, without, **defaults)


def given(args: argparse.Namespace, kind: type[Options]) -> dict[str, Any]:
    """The options of a class that were given; the rest is left to its defaults."""
    named = {option.name: getattr(args, option.name, None) for option in options_of(kind, "cli")}
    return {name: value for name, value in named.items() if value is not None}


def load_options(args: argparse.Namespace, **changed: Any) -> LoadOptions:
    return LoadOptions(**{"progress": on_terminal(), **given(args, LoadOptions), **changed})


def load_model(args: argparse.Namespace) -> TTS:
    from .. import load

    return load(args.model, load_options(args))


def speech_options(args: argparse.Namespace, tts: TTS, **defaults: Any) -> SpeechOptions:
    """What was asked for, with the voice found; defaults: of what was not."""
    from ..voice_folder import VoiceFolder, default_voice_folder, find_voice

    asked = defaults | given(args, SpeechOptions)
    if "voice" in asked:
        folder = VoiceFolder(default_voice_folder())
        asked["voice"] = find_voice(asked["voice"], tts.voices, folder)
    return SpeechOptions(**asked)


def add_text_options(
    parser: argparse.ArgumentParser, help: str = "what to say; - or nothing: standard input"
) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("text", nargs="?", metavar="TEXT", help=help)
    group.add_argument("-f", "--file", metavar="FILE", help="a text file in UTF-8 to say")


def read_text(args: argparse.Namespace) -> str:
    """The text of an argument, a file or standard input."""
    if args.file is not None:
        with open(args.file, "rb") as file:
            return _decoded(file.read(), args.file)
    if args.text not in (None, "-"):
        return args.text
    if sys.stdin is None or (args.text is None and sys.stdin.isatty()):
        raise ValueError(
            "there is no text: give it as an argument, with -f FILE or on standard input"
        )
    return _decoded(sys.stdin.buffer.read(), "standard input")


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name} is not text in UTF-8: see its byte {error.start + 1}") from error


def on_terminal() -> bool:
    """Whether someone watches standard error, where progress is shown."""
    return sys.stderr is not None and sys.stderr.isatty()


def remark(line: str) -> None:
    """One line on standard error, where there is one: print's None would be standard output."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)
