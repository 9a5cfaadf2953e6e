"""Arguments of any type and size: ValueError or nightingale.Error, and nothing else."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import nightingale
from nightingale import LoadOptions, SpeechOptions, cli
from nightingale.hub import resolve
from nightingale.manifest import read_manifest
from nightingale.option import Options, names_of
from nightingale.options import ServerOptions
from nightingale.voice_folder import VoiceFolder, find_voice

REFUSALS = (ValueError, nightingale.Error)
HUGE = 10**400
LONG = "x" * 5000
TRY = settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

NUMBERS = st.one_of(
    st.integers(),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([HUGE, -HUGE, 10**5000, 2**31, 2**63, 2**64, 1e300, 8.0, 4.0, Fraction(1, 3)]),
    st.sampled_from([np.int64(8), np.float32(0.5), np.float64("nan"), np.uint64(2**64 - 1)]),
)
ANYTHING = st.one_of(
    NUMBERS,
    st.none(),
    st.booleans(),
    st.text(),
    st.sampled_from([LONG, "a\0b", "\ud800", "", "en", "float32", "cpu", "~nobody-of-that-name"]),
    st.binary(),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=1),
    st.builds(object),
    st.builds(Path, st.sampled_from(["a", LONG, "."])),
    st.just(np.zeros((2, 2))),
)


def _refusal(call: Callable[[], Any]) -> str | None:
    """What it refuses with, None where it does not; any other exception passes through."""
    try:
        call()
    except REFUSALS as error:
        return str(error)
    return None


def _answers(call: Callable[[], Any]) -> bool:
    """Whether it works, or refuses in words of a length that can be read."""
    refusal = _refusal(call)
    return refusal is None or 0 < len(refusal) < 6000


@pytest.mark.parametrize("kind", [LoadOptions, SpeechOptions, ServerOptions])
@TRY
@given(data=st.data())
def test_options_of_any_value(kind: type[Options], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names_of(kind)))
    value = data.draw(ANYTHING)
    assert _answers(lambda: kind(**{name: value}))


@TRY
@given(data=st.data())
def test_keywords_of_generate_of_any_value(quick_tts: nightingale.TTS, data: st.DataObject) -> None:
    names = data.draw(st.sets(st.sampled_from(names_of(SpeechOptions)), min_size=1, max_size=3))
    keywords = {name: data.draw(ANYTHING) for name in names} | {"max_tokens": 1, "steps": 1}

    def begin() -> None:
        # The first step: what follows only takes longer.
        next(quick_tts.stepwise("Hi.", **keywords), None)

    assert _answers(begin)


@settings(TRY, max_examples=60)
@given(value=ANYTHING)
def test_arguments_of_the_stages_of_any_value(
    quick_tts: nightingale.TTS, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    small = type(value) is int and 1 <= value <= 1000
    tokens = np.arange(3, dtype=np.int32)
    for call in (
        lambda: quick_tts.tokenize(value),
        lambda: quick_tts.tokenize("Hi.", value),
        lambda: quick_tts.t3_logits(value, tokens),
        lambda: quick_tts.t3_logits(tokens, value),
        lambda: quick_tts.mel(value, steps=1),
        lambda: quick_tts.mel(tokens, steps=1 if small else value),
        lambda: quick_tts.mel(tokens, steps=1, noise=value),
        lambda: quick_tts.mel(tokens, steps=1, seed=value),
        lambda: quick_tts.vocode(value),
        lambda: quick_tts.bake_voice(value),
        lambda: quick_tts.bake_voice(np.zeros(9), value),
        lambda: nightingale.Voice.load(value),
        lambda: resolve(value, offline=True),
        lambda: VoiceFolder("voices").load(value),
        lambda: nightingale.Voice(np.zeros(256)).with_exaggeration(value),
        lambda: nightingale.Audio(np.zeros(9, np.float32), tokens).save(value),
        lambda: nightingale.Audio(value, tokens).save("a.wav"),
        lambda: nightingale.Voice(np.zeros(256)).save(value),
        lambda: nightingale.Voice(value, value, value).save("a.safetensors"),
        lambda: quick_tts.speech_tokens("Hi.", voice=nightingale.Voice(value), max_tokens=1),
    ):
        assert _answers(call)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpeechOptions(seed=HUGE), "seed must be between 0 and"),
        (lambda: SpeechOptions(speed=HUGE), "speed is a number of too many digits"),
        (lambda: SpeechOptions(temperature=1e300), "temperature must be 0 or more"),
        (lambda: SpeechOptions(exaggeration=math.inf), "exaggeration must be 0 or more"),
        (lambda: LoadOptions(bits=8.0), "bits must be 8, 4 or None, not 8.0"),
        (lambda: LoadOptions(threads=10**20), "threads must be a whole number from 1 to 1024"),
        (lambda: LoadOptions(threads=10**5000), "threads must be a whole number from 1 to 1024"),
        (lambda: nightingale.load(LONG), "there is no folder"),
        (lambda: nightingale.load("a\0b"), "there is no folder"),
        (lambda: nightingale.load("~nobody-of-that-name/x"), "cannot give|no folder|not been"),
        (lambda: nightingale.load(draft=LONG), "draft must be"),
        (lambda: find_voice(LONG, [], VoiceFolder("none")), "unknown voice"),
    ],
)
def test_messages(make: Callable[[], Any], message: str, quick_checkpoint: Path) -> None:
    with pytest.raises(REFUSALS, match=message) as caught:
        make()
    assert len(str(caught.value)) < 6000


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"language": []}, r"unknown language (\[\]|{})"),
        ({"language": {}}, r"unknown language (\[\]|{})"),
        ({"language": LONG}, "unknown language"),
        ({"voice": LONG}, "unknown voice"),
        ({"voice": "a\0b"}, "unknown voice"),
        ({"voice": []}, "voice must be a Voice, a name or a path"),
    ],
)
def test_messages_of_generate(
    keywords: dict[str, Any], message: str, quick_tts: nightingale.TTS
) -> None:
    for call in (quick_tts.generate, quick_tts.stream, quick_tts.speech_tokens):
        with pytest.raises(ValueError, match=message):
            call("Hi.", **keywords)


def test_a_path_with_a_nul_is_not_cut_there(tmp_path: Path) -> None:
    path = str(tmp_path / "a")
    nightingale.Voice(np.zeros(256, np.float32)).save(path)
    assert nightingale.Voice.load(path).speaker_emb.shape == (256,)
    with pytest.raises(ValueError, match="NUL"):
        nightingale.Voice.load(f"{path}\0b")
    with pytest.raises(nightingale.Error, match="NUL"):
        nightingale._core.TensorFile.open(f"{path}\0b")


@TRY
@given(
    lines=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.dictionaries(
                st.sampled_from(["text", "output", "seed", "speed", "language", "voice", "steps"]),
                st.one_of(st.none(), st.text(max_size=5), st.integers(), st.just(HUGE), st.floats())
                | st.lists(st.integers(), max_size=1),
            ),
        ),
        max_size=4,
    )
)
def test_manifests_of_any_lines(lines: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(
        b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    )
    assert _answers(lambda: read_manifest(path, lambda options: SpeechOptions(**options) and None))


WORDS = st.one_of(
    st.sampled_from(["say", "stream", "tokens", "bake", "voices", "quantize", "-o", "-", "Hi."]),
    st.sampled_from(["--seed", "--speed", "--threads", "--model", "--voice", "--bits", "--file"]),
    st.sampled_from([LONG, str(HUGE), "nan", "inf", "-1", "8.0", "0", "a\0b", "/", "none/x.wav"]),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=5),
)


@settings(TRY, max_examples=80)
@given(words=st.lists(WORDS, max_size=6))
def test_command_lines_of_any_words(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """One line that is no traceback, and a status; nothing is spoken, for there is no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", None)
    monkeypatch.setattr("nightingale.checkpoint.EMBEDDED", tmp_path / "not-there")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    try:
        status = cli.main(words)
    except SystemExit as usage:  # argparse's
        status = usage.code
    assert status in (0, 1, 2)
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    assert "unexpected" not in errors
