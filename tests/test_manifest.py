"""A batch's manifest: what it may say, and how what it may not is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nightingale import cli
from nightingale.manifest import KEYS, Line, read_manifest
from nightingale.option import names_of, options_of
from nightingale.options import SpeechOptions

from .command import names_in

HELLO = '{"text": "Hello.", '


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"text": "Hello."', "is not JSON: Expecting ',' delimiter at character 18"),
        ('"Hello."', 'must be an object such as {"text": "Hello."}, not a str'),
        ("[" * 100_000, "is not JSON of one object: it is nested too deeply"),
        (b'{"text": "caf\xe9"}', "is not text in UTF-8: see its byte 14"),
        ("{}", "text must be a string with something to say, not None"),
        ('{"text": " "}', "text must be a string with something to say, not ' '"),
        ('{"text": 7}', "text must be a string with something to say, not 7"),
        (HELLO + '"pitch": 1}', f"unknown key 'pitch'; known are {', '.join(KEYS)}"),
        (HELLO + '"seed": 1.5}', "seed must be a whole number, not 1.5"),
        (HELLO + '"seed": true}', "seed must be a whole number, not True"),
        (HELLO + '"speed": "fast"}', "speed must be a number, not 'fast'"),
        (HELLO + '"speed": NaN}', "is not JSON: NaN is not a number"),
        (HELLO + '"speed": 1e999}', "speed must be finite, not inf"),
        (HELLO + f'"speed": 1{"0" * 400}}}', "speed is a number of too many digits: 1000"),
        (HELLO + '"language": 7}', "language must be a string, not 7"),
        (HELLO + '"language": "xx"}', "unknown language 'xx'; this model speaks ar, "),
        (HELLO + '"voice": "Nobody"}', "unknown voice 'Nobody': the model has default, "),
        (HELLO + '"output": 7}', "output must be a string, not 7"),
        (HELLO + '"output": "a.aiff"}', "'a.aiff' must end in one of .wav, .flac, .ogg, .mp3"),
        (HELLO + '"output": "A.wav"}', "its output 'A.wav' is that of line 1"),
        (HELLO + '"output": "000003.wav"}', "its output '000003.wav' is that of line 3"),
        *(
            (
                HELLO + f'"output": {json.dumps(name)}}}',
                f"output must be a file name, with no folder in it, not {name!r}",
            )
            for name in ("../a.wav", "/a.wav", "b/a.wav", "b\\a.wav", "a\0.wav", "a\n.wav")
        ),
        (HELLO + f'"output": "{"a" * 240}.wav"}}', "output must have at most 230 bytes, not 'aa"),
    ],
)
def test_every_bad_line_is_told_and_nothing_is_made(
    line: str | bytes,
    problem: str,
    checkpoint: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifest = tmp_path / "manifest.jsonl"
    good = b'{"text": "Hello.", "output": "a.wav"}\n\n{"text": "Hello."}\n'
    bad = line if isinstance(line, bytes) else line.encode()
    manifest.write_bytes(good + bad + b'\n{"texts": ""}\n')
    command = ["batch", str(manifest), "-o", str(tmp_path / "out"), "--model", str(checkpoint)]
    assert cli.main(command) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    first, second, last = errors.splitlines()
    assert first.startswith(f"nightingale: line 4: {problem}")
    assert second.startswith("nightingale: line 5: unknown key 'texts'; ")
    assert last == f"nightingale: 2 lines are wrong in {manifest}; nothing was made"
    assert names_in(tmp_path) == ["manifest.jsonl"]


def test_a_manifest_may_give_every_option_of_generate() -> None:
    chunks = {option.name for option in options_of(SpeechOptions) if option.stage == "chunks"}
    assert set(KEYS) == {"text", "output", *names_of(SpeechOptions)} - chunks


def test_blank_lines_count_and_null_is_not_given(tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_bytes(b'\xef\xbb\xbf\n{"text": "One.", "seed": null}\r\n\n{"text": "Two."}')
    lines = read_manifest(manifest, lambda settings: None)
    assert lines == [Line(2, "One.", "000002.wav", {}), Line(4, "Two.", "000004.wav", {})]
