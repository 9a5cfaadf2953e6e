"""`say`, `stream` and `tokens`: a text to a file, the speakers or standard output."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from .._core import Error
from ..atomic_files import atomic_path
from ..audio import SAMPLE_RATE
from ..captions import caption_file
from ..chunks import Chunk
from ..model_rules import IgnoredOptionWarning, ignored_text
from ..text.markup import without_markup
from ..text.unspoken import UnspokenWarning, named
from ..voice_folder import VoiceFolder, find_named_voice
from ..word_times import Word
from .options import (
    CHUNKS,
    MARKUP,
    SOUND,
    Arguments,
    add_shared,
    add_text,
    factor_text,
    in_flags,
    on_terminal,
    progress_bar,
    remark,
)
from .outputs import add_output, check_output, open_output

logger = logging.getLogger(__name__)

CAPTIONS = {"srt": "SubRip", "vtt": "WebVTT"}


def add_commands(commands: Any) -> None:
    say = commands.add_parser("say", help="speak a text, each sentence made as a whole")
    _add_options(say, "print one JSON object", without=(CHUNKS,))
    say.set_defaults(run=_say)

    stream = commands.add_parser("stream", help="speak a text while it is being made")
    _add_options(stream, "print one line of JSON a chunk", without=())
    stream.set_defaults(run=_stream)

    tokens = commands.add_parser("tokens", help="print the speech tokens of a text")
    add_text(tokens)
    add_shared(tokens, json="print one JSON list", speech=True, without=(CHUNKS, SOUND, MARKUP))
    tokens.set_defaults(run=_tokens)


def _add_options(parser: argparse.ArgumentParser, json_help: str, without: tuple[str, ...]) -> None:
    add_text(parser)
    add_output(parser)
    told = parser.add_mutually_exclusive_group()
    told.add_argument("--words", action="store_true", help="print when each word is said")
    told.add_argument("--json", action="store_true", help=json_help)
    for kind, name in CAPTIONS.items():
        parser.add_argument(
            f"--{kind}", metavar="FILE", help=f"also write captions to a {name} file"
        )
    add_shared(parser, json=None, speech=True, without=without)


@dataclass
class Speech:
    """What has been said so far."""

    file: str | None
    samples: int = 0
    tokens: list[int] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    language: str = ""
    timings: dict[str, float] = field(default_factory=dict)
    digest: Any = field(default_factory=hashlib.sha256)

    @property
    def seconds(self) -> float:
        return self.samples / SAMPLE_RATE

    def add(self, chunk: Chunk) -> None:
        self.samples += len(chunk.samples)
        self.tokens += chunk.tokens.tolist()
        self.words += chunk.words
        self.language = chunk.language
        self.timings = chunk.timings
        self.digest.update(chunk.samples.astype("<f4").tobytes())

    def summary(self) -> str:
        return (
            f"{self.seconds:.2f} s of speech in {self.timings['total']:.2f} s, "
            f"{factor_text(self.timings['rtf'])}"
        )


def _say(args: Arguments) -> None:
    tell_whole(args, _speak(args, lambda speech, chunk: None, first_chunk=None))


def tell_whole(args: Arguments, speech: Speech, without: tuple[str, ...] = ()) -> None:
    """Tells what came of a command, but for some facts."""
    if args.json:
        described = {
            "file": speech.file,
            "seconds": speech.seconds,
            "samples": speech.samples,
            "sample_rate": SAMPLE_RATE,
            "language": speech.language,
            "tokens": speech.tokens,
            "words": speech.words,
            "timings": speech.timings,
            "sha256": speech.digest.hexdigest(),
        }
        told = {name: fact for name, fact in described.items() if name not in without}
        _print(speech.file, json.dumps(told))
    elif on_terminal():
        remark(f"{speech.file or 'played'}: {speech.summary()}")


def _stream(args: Arguments) -> None:
    def tell(speech: Speech, chunk: Chunk) -> None:
        if args.json:
            described = {
                "index": chunk.index,
                "start": speech.seconds - len(chunk.samples) / SAMPLE_RATE,
                "samples": len(chunk.samples),
                "language": chunk.language,
                "tokens": chunk.tokens.tolist(),
                "words": chunk.words,
                "timings": chunk.timings,
            }
            _print(speech.file, json.dumps(described))

    speech = _speak(args, tell)
    if not args.json:
        remark(f"first audio after {speech.timings['ttfa']:.2f} s; {speech.summary()}")


def _tokens(args: Arguments) -> None:
    text = args.read_text()
    tts = args.load_model()
    stream = tts.iter_speech_tokens(text, args.speech_options(tts))
    if args.json:
        print(json.dumps(list(stream)))
        return
    for token in stream:
        print(token, end=" ", flush=True)
    print()


def _speak(args: Arguments, tell: Callable[[Speech, Chunk], None], **overrides: Any) -> Speech:
    """Says what was asked for; `tell` hears of each chunk once it is on its way."""
    text = args.read_text()
    check_output(args.output)
    look = "{desc}: {n:.1f} s of speech [{elapsed}]"
    with (
        open_output(args.output, args.raw_format) as output,
        progress_bar(not _prints_on_terminal(args), desc="loading", bar_format=look) as bar,
    ):
        speech = Speech(output.file)
        tts = args.load_model()
        asked = [kind for kind in CAPTIONS if getattr(args, kind)]
        bar.set_description_str("speaking")
        for told_below in (UnspokenWarning, IgnoredOptionWarning):
            warnings.simplefilter("ignore", told_below)
        options = args.speech_options(tts)
        chunks = tts.stream(
            text,
            options,
            find_voice=lambda name: find_named_voice(name, tts.voices, VoiceFolder()),
            **overrides,
        )
        with closing(chunks):
            for chunk in chunks:
                if chunk.unspoken:
                    remark(f"nightingale: left out of the speech: {named(chunk.unspoken)}")
                if chunk.ignored:
                    remark(f"nightingale: {in_flags(ignored_text(chunk.ignored))}")
                output.write(chunk.samples)
                speech.add(chunk)
                bar.update(len(chunk.samples) / SAMPLE_RATE)
                tell(speech, chunk)
                if args.words:
                    for word in chunk.words:
                        _print(output.file, f"{word.start:.2f}\t{word.end:.2f}\t{word.text}")
        if not speech.samples:
            raise Error("the model said nothing")
        written = without_markup(text, speech.language, options.markup) if asked else ""
        for kind in asked:
            with atomic_path(getattr(args, kind)) as partial:
                partial.write_text(caption_file(kind, speech.words, written), "utf-8")
    return speech


def _print(file: str | None, line: str) -> None:
    """On standard output, unless the sound is there."""
    if file == "-":
        remark(line)
    else:
        print(line, flush=True)


def _prints_on_terminal(args: Arguments) -> bool:
    stdout_is_terminal = sys.stdout is not None and sys.stdout.isatty()
    return bool(args.words or args.json) and (stdout_is_terminal or args.output == "-")
