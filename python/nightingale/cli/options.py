"""Options that several commands share, and what they mean to the package."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..kv_cache import KV_BITS
from ..loading import DEVICES
from ..model_options import BITS, DTYPES
from ..tts import TTS

T3_SETTINGS: dict[str, tuple[type, str]] = {
    "language": (str, "code of the language, such as fr (default: en)"),
    "seed": (int, "another seed gives another reading (default: 0)"),
    "temperature": (float, "0: always the likeliest token (default: 0.8)"),
    "cfg_weight": (float, "how closely the text is followed (default: 0.5)"),
    "exaggeration": (float, "0.5 is neutral, more is livelier (default: the voice's own)"),
    "repetition_penalty": (float, "1 is none (default: the model's)"),
    "min_p": (float, "share of the likeliest token's chance that others need (default: 0.05)"),
    "top_p": (float, "chance that the tokens drawn from add up to (default: 1)"),
    "max_tokens": (int, "speech tokens of a sentence at most, 25 a second (default: 1000)"),
}
SOUND_SETTINGS: dict[str, tuple[type, str]] = {
    "steps": (int, "of the flow (default: the model's)"),
    "speed": (float, "0.5 to 2; more is faster (default: 1)"),
}


def add_json(parser: argparse.ArgumentParser, help: str = "print one JSON object") -> None:
    parser.add_argument("--json", action="store_true", help=help)


def add_model_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", help="a checkpoint's folder or a hub id (default: the embedded model)"
    )
    group.add_argument("--dtype", choices=DTYPES, help="of the weights (default: the file's)")
    group.add_argument(
        "--bits", type=int, choices=BITS, help="of T3's matrices (default: the file's)"
    )
    group.add_argument(
        "--kv-bits", type=int, choices=KV_BITS, help="of T3's KV cache (default: floats)"
    )
    group.add_argument(
        "--kv-budget", type=float, help="share of the speech that it keeps, 0 to 1 (default: all)"
    )
    group.add_argument(
        "--draft", help="proposes tokens to T3, on a CPU: ngram, layers or a smaller T3's path"
    )
    group.add_argument("--device", choices=DEVICES, default="auto")
    group.add_argument("--threads", type=int, help="of the CPU (default: all cores)")
    group.add_argument("--offline", action="store_true", help="use only what was downloaded before")


def load_model(args: argparse.Namespace) -> TTS:
    from .. import load

    return load(args.model, **model_settings(args))


def model_settings(args: argparse.Namespace) -> dict[str, Any]:
    """What `nightingale.load` takes besides the model."""
    return {
        "bits": args.bits,
        "dtype": args.dtype,
        "kv_bits": args.kv_bits,
        "kv_budget": args.kv_budget,
        "draft": args.draft,
        "device": args.device,
        "threads": args.threads,
        "offline": args.offline,
        "progress": on_terminal(),
    }


def add_speech_options(parser: argparse.ArgumentParser, sound: bool = True) -> None:
    group = parser.add_argument_group("speech")
    group.add_argument(
        "--voice", help="a voice of the model, one of the voice folder, or a voice file's path"
    )
    for name, (kind, help) in (T3_SETTINGS | (SOUND_SETTINGS if sound else {})).items():
        group.add_argument(f"--{name.replace('_', '-')}", type=kind, help=help)


def speech_settings(args: argparse.Namespace, tts: TTS) -> dict[str, Any]:
    """What was asked for, as the package takes it; the rest is left to its defaults."""
    from ..voice_folder import VoiceFolder, default_voice_folder, find_voice

    names = (*T3_SETTINGS, *SOUND_SETTINGS)
    settings = {name: getattr(args, name, None) for name in names}
    if args.voice is not None:
        folder = VoiceFolder(default_voice_folder())
        settings["voice"] = find_voice(args.voice, tts.voices, folder)
    return {name: value for name, value in settings.items() if value is not None}


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
