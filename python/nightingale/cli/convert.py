"""`convert`: what a recording says, in another voice."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, BinaryIO

from ..audio import SAMPLE_RATE
from ..long_recording import MOST_SECONDS, LongRecording
from ..options import SpeechOptions, conversion_names
from .options import Arguments, add_options, add_shared, progress_bar
from .outputs import add_output, check_output, open_output
from .speaking import Speech, tell_whole


def add_commands(commands: Any) -> None:
    convert = commands.add_parser("convert", help="give a recording another voice")
    convert.add_argument(
        "recording",
        metavar="RECORDING",
        help="speech of any length: WAV, FLAC, OGG, MP3; -: such a file on standard input",
    )
    add_output(convert)
    add_shared(convert)
    add_options(convert.add_argument_group("speech"), SpeechOptions, only=conversion_names())
    convert.set_defaults(run=_convert)


def _convert(args: Arguments) -> None:
    check_output(args.output)
    with _source(args.recording) as source:
        recording = LongRecording.of(source)
        made = _converted(args, recording)
    tell_whole(args, made, without=("language", "words"))


@contextmanager
def _source(recording: str) -> Iterator[str | BinaryIO]:
    """A path, or standard input, which is read twice and so is kept in a file meanwhile."""
    if recording != "-":
        yield recording
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise ValueError("there is no recording on standard input")
    with tempfile.TemporaryFile() as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
        yield file


def _converted(args: Arguments, recording: LongRecording) -> Speech:
    seconds = recording.seconds / (args.speed or 1)
    look = "{desc}: {percentage:3.0f}% of {total:.0f} s [{elapsed}<{remaining}]"
    with (
        open_output(args.output, args.raw_format) as output,
        progress_bar(
            not (args.json and args.output == "-") and seconds < MOST_SECONDS,
            total=seconds,
            desc="loading",
            bar_format=look,
        ) as bar,
    ):
        made = Speech(output.file)
        tts = args.load_model()
        bar.set_description_str("converting")
        options = args.speech_options(tts, first_chunk=None)
        with closing(tts.convert_stream(recording, options)) as chunks:
            for chunk in chunks:
                output.write(chunk.samples)
                made.add(chunk)
                bar.update(len(chunk.samples) / SAMPLE_RATE)
    return made
