"""A batch's manifest: a file of JSON lines, each a text to speak, checked whole."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._core import Error
from .audio_writer import audio_format
from .option import options_of
from .options import SpeechOptions

OPTIONS = {option.name: option for option in options_of(SpeechOptions, "manifest")}
KEYS = ("text", "output", *OPTIONS)
MOST_NAME_BYTES = 230  # with what an unfinished file adds, below the 255 of most disks


@dataclass(frozen=True)
class Line:
    """One line of a manifest: what to say, how, and the name of its file."""

    number: int  # from 1
    text: str
    output: str
    options: dict[str, Any]  # those the line gives


class ManifestError(ValueError):
    """What is wrong with a manifest, line by line."""

    def __init__(self, path: Path, problems: list[str]) -> None:
        noun = "line is" if len(problems) == 1 else "lines are"
        super().__init__(f"{len(problems)} {noun} wrong in {path}; nothing was made")
        self.problems = problems


def read_manifest(path: Path, check: Callable[[dict[str, Any]], None]) -> list[Line]:
    """The lines of a manifest; a ManifestError names every bad one.

    `check` raises ValueError or Error for options of a line that the model does not have. Blank
    lines are passed over, and null stands for an option that is not given.
    """
    lines: list[Line] = []
    problems: list[str] = []
    taken: dict[str, int] = {}  # line by output, which many disks tell apart without case
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    for position, given in enumerate(content.split(b"\n"), 1):
        if not given.strip():
            continue
        try:
            line = _line(position, given)
            first = taken.setdefault(line.output.casefold(), position)
            if first != position:
                raise ValueError(f"its output {line.output!r} is that of line {first}")
            check(line.options)
        except (Error, ValueError, OverflowError) as error:
            problems.append(f"line {position}: {error}")
        else:
            lines.append(line)
    if problems:
        raise ManifestError(path, problems)
    if not lines:
        raise ValueError(f"{path} has no lines")
    return lines


def _line(position: int, given: bytes) -> Line:
    try:
        found = json.loads(given.decode(), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise ValueError(f"is not text in UTF-8: see its byte {error.start + 1}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"is not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError:
        raise ValueError("is not JSON of one object: it is nested too deeply") from None
    if not isinstance(found, dict):
        kind = type(found).__name__
        raise ValueError(f'must be an object such as {{"text": "Hello."}}, not a {kind}')
    unknown = [key for key in found if key not in KEYS]
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}; known are {', '.join(KEYS)}")
    text = found.pop("text", None)
    if not isinstance(text, str) or not text.strip():
        raise ValueError(f"text must be a string with something to say, not {text!r}")
    output = found.pop("output", None)
    options = {name: _value(name, given) for name, given in found.items() if given is not None}
    return Line(position, text, f"{position:06}.wav" if output is None else _name(output), options)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"is not JSON: {name} is not a number")


def _value(name: str, given: Any) -> Any:
    """An option's value, whose range is checked when the line is spoken."""
    value = OPTIONS[name].typed(given)
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name} must be finite, not {value}")
    return value


def _name(output: Any) -> str:
    if not isinstance(output, str):
        raise ValueError(f"output must be a string, not {output!r}")
    if any(character in "/\\" or not character.isprintable() for character in output):
        raise ValueError(f"output must be a file name, with no folder in it, not {output!r}")
    if len(output.encode()) > MOST_NAME_BYTES:
        raise ValueError(f"output must have at most {MOST_NAME_BYTES} bytes, not {output!r}")
    audio_format(output)
    return output
