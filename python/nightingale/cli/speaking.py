"""`say` and `stream`: a text to a file, the speakers or standard output."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..audio import SAMPLE_RATE
from .options import (
    CHUNKS,
    add_model_options,
    add_speech_options,
    add_text_options,
    load_model,
    on_terminal,
    read_text,
    remark,
    speech_options,
)

if TYPE_CHECKING:
    from ..speech import Chunk

logger = logging.getLogger(__name__)


def add_commands(commands: Any) -> None:
    say = commands.add_parser("say", help="speak a text, each sentence made as a whole")
    _add_options(say, "print one JSON object", without=(CHUNKS,))
    say.set_defaults(run=_say)

    stream = commands.add_parser("stream", help="speak a text while it is being made")
    _add_options(stream, "print one line of JSON a chunk", without=())
    stream.set_defaults(run=_stream)


def _add_options(parser: argparse.ArgumentParser, json_help: str, without: tuple[str, ...]) -> None:
    from .outputs import RAW_FORMATS

    add_text_options(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="a .wav, .flac, .ogg or .mp3 file, or - for raw sound on standard output; "
        "without it the sound is played, or written to speech.wav where that is not possible",
    )
    parser.add_argument(
        "--raw-format",
        choices=RAW_FORMATS,
        default=RAW_FORMATS[0],
        help="of raw sound: mono, 24,000 samples a second (default: %(default)s)",
    )
    told = parser.add_mutually_exclusive_group()
    told.add_argument("--words", action="store_true", help="print when each word is said")
    told.add_argument("--json", action="store_true", help=json_help)
    add_model_options(parser)
    add_speech_options(parser, without)


@dataclass
class _Speech:
    """What has been said so far."""

    file: str | None
    samples: int = 0
    tokens: list[int] = field(default_factory=list)
    words: list[tuple[str, float, float]] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE

    def add(self, chunk: Chunk) -> None:
        self.samples += len(chunk.samples)
        self.tokens += chunk.tokens.tolist()
        self.words += chunk.words
        self.timings = chunk.timings
        self.digest.update(chunk.samples.astype("<f4").tobytes())

    def summary(self) -> str:
        return (
            f"{self.seconds:.2f} s of speech in {self.timings['total']:.2f} s, "
            f"real-time factor {self.timings['rtf']:.2f}"
        )


def _say(args: argparse.Namespace) -> None:
    speech = _speak(args, lambda speech, chunk: None, first_chunk=None)
    if args.json:
        described = {
            "file": speech.file,
            "seconds": speech.seconds,
            "samples": speech.samples,
            "sample_rate": SAMPLE_RATE,
            "tokens": speech.tokens,
            "words": speech.words,
            "timings": speech.timings,
            "sha256": speech.digest.hexdigest(),
        }
        _print(speech.file, json.dumps(described))
    elif on_terminal():
        remark(f"{speech.file or 'played'}: {speech.summary()}")


def _stream(args: argparse.Namespace) -> None:
    def tell(speech: _Speech, chunk: Chunk) -> None:
        if args.json:
            described = {
                "index": chunk.index,
                "start": speech.seconds - len(chunk.samples) / SAMPLE_RATE,
                "samples": len(chunk.samples),
                "tokens": chunk.tokens.tolist(),
                "words": chunk.words,
                "timings": chunk.timings,
            }
            _print(speech.file, json.dumps(described))

    speech = _speak(args, tell)
    if not args.json:
        remark(f"first audio after {speech.timings['ttfa']:.2f} s; {speech.summary()}")


def _speak(
    args: argparse.Namespace, tell: Callable[[_Speech, Chunk], None], **overrides: Any
) -> _Speech:
    """Says what was asked for; `tell` hears of each chunk once it is on its way."""
    from tqdm import tqdm

    from .._core import Error
    from .outputs import check_output, open_output

    text = read_text(args)
    check_output(args.output)
    with (
        open_output(args.output, args.raw_format) as output,
        tqdm(
            desc="loading",
            bar_format="{desc}: {n:.1f} s of speech [{elapsed}]",
            disable=not on_terminal() or _prints_on_terminal(args),
            leave=False,
        ) as bar,
    ):
        speech = _Speech(output.file)
        tts = load_model(args)
        if args.words and not tts.info["t3"]["alignment"]:
            logger.warning("this model has no alignment, so the words' times are not known")
        bar.set_description_str("speaking")
        with closing(tts.stream(text, speech_options(args, tts), **overrides)) as chunks:
            for chunk in chunks:
                output.write(chunk.samples)
                speech.add(chunk)
                bar.update(len(chunk.samples) / SAMPLE_RATE)
                tell(speech, chunk)
                if args.words:
                    for word, start, end in chunk.words:
                        _print(output.file, f"{start:.2f}\t{end:.2f}\t{word}")
        if not speech.samples:
            raise Error("the model said nothing")
    return speech


def _print(file: str | None, line: str) -> None:
    """On standard output, unless the sound is there."""
    if file == "-":
        remark(line)
    else:
        print(line, flush=True)


def _prints_on_terminal(args: argparse.Namespace) -> bool:
    stdout_is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return (args.words or args.json) and (stdout_is_terminal or args.output == "-")
