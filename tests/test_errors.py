"""The mistakes of a first hour: each is one clear line that says what was wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import nightingale
from nightingale import _core

from .folders import SETTINGS, with_settings, without

TOKENIZER = "grapheme_mtl_merged_expanded_v1.json"
T3_FILE = "t3_mtl23ls_v2.safetensors"


def error_of(kind: type[Exception], call: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    with pytest.raises(kind) as caught:
        call(*args, **kwargs)
    assert type(caught.value) is kind
    message = str(caught.value)
    assert message
    assert "\n" not in message
    return message


def replaced(checkpoint: Path, folder: Path, name: str, content: str | None) -> Path:
    """The checkpoint with one file's content replaced, or without that file."""
    without(checkpoint, folder, name)
    if content is not None:
        (folder / name).write_text(content)
    return folder


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("", "there is no text to speak"),
        (" \t\n ", "there is no text to speak"),
        (None, "text must be a string, not NoneType"),
        (5, "text must be a string, not int"),
        (b"hello", "text must be a string, not bytes"),
        (["hello"], "text must be a string, not list"),
    ],
)
def test_text_must_say_something(tts: nightingale.TTS, text: Any, phrase: str) -> None:
    assert error_of(ValueError, tts.speech_tokens, text) == phrase
    assert error_of(ValueError, tts.tokenize, text) == phrase


def test_text_must_fit_the_position_table(tts: nightingale.TTS) -> None:
    spare = 2048 - len(tts.tokenize("x"))
    tts.iter_speech_tokens("x" * (1 + spare), max_tokens=1)  # the most there is room for
    message = error_of(ValueError, tts.speech_tokens, "x" * (2 + spare))
    assert "the text has 2049 tokens; this model takes 2048 at a time" in message
    assert "split it into sentences" in message


@pytest.mark.parametrize(
    ("name", "value", "phrase"),
    [
        ("max_tokens", 4101, "max_tokens is 4101; this model has positions for 4100"),
        ("max_tokens", 2**31, "max_tokens must be between 1 and 2147483647, not 2147483648"),
        ("max_tokens", 0, "max_tokens must be between 1 and 2147483647, not 0"),
        ("max_tokens", -3, "max_tokens must be between 1 and 2147483647, not -3"),
        ("max_tokens", 10.0, "max_tokens must be a whole number, not 10.0"),
        ("max_tokens", True, "max_tokens must be a whole number, not True"),
        ("max_tokens", "10", "max_tokens must be a whole number, not '10'"),
        ("temperature", math.nan, "temperature must be 0 or more, not nan"),
        ("temperature", math.inf, "temperature must be 0 or more, not inf"),
        ("temperature", -0.5, "temperature must be 0 or more, not -0.5"),
        ("temperature", "hot", "temperature must be a number, not 'hot'"),
        ("repetition_penalty", 0, "repetition_penalty must be above 0, not 0"),
        ("repetition_penalty", -1.2, "repetition_penalty must be above 0, not -1.2"),
        ("repetition_penalty", math.nan, "repetition_penalty must be above 0, not nan"),
        ("repetition_penalty", math.inf, "repetition_penalty must be above 0, not inf"),
        ("min_p", -0.1, "min_p must be between 0 and 1, not -0.1"),
        ("min_p", 1.5, "min_p must be between 0 and 1, not 1.5"),
        ("min_p", math.nan, "min_p must be between 0 and 1, not nan"),
        ("top_k", -1, "top_k must be between 0 and 2147483647, not -1"),
        ("top_p", -0.1, "top_p must be between 0 and 1, not -0.1"),
        ("top_p", 1.5, "top_p must be between 0 and 1, not 1.5"),
        ("top_p", math.nan, "top_p must be between 0 and 1, not nan"),
        ("cfg_weight", -0.5, "cfg_weight must be 0 or more, not -0.5"),
        ("cfg_weight", math.nan, "cfg_weight must be 0 or more, not nan"),
        ("exaggeration", math.nan, "exaggeration must be 0 or more, not nan"),
        ("exaggeration", -0.5, "exaggeration must be 0 or more, not -0.5"),
        ("exaggeration", True, "exaggeration must be a number, not True"),
        ("seed", -1, "seed must be between 0 and 18446744073709551615, not -1"),
        ("seed", 2**64, "seed must be between 0 and 18446744073709551615, not 1844674407370955161"),
        ("seed", 1.5, "seed must be a whole number, not 1.5"),
        ("seed", None, "seed must be a whole number, not None"),
        ("voice", "nobody", "unknown voice 'nobody': not a file, and the model has default"),
    ],
)
def test_a_setting_out_of_range_is_refused_at_the_call(
    tts: nightingale.TTS, name: str, value: Any, phrase: str
) -> None:
    assert phrase in error_of(ValueError, tts.iter_speech_tokens, "Hello.", **{name: value})


def test_a_voice_that_is_no_voice_is_refused(tts: nightingale.TTS) -> None:
    assert "voice" in error_of(ValueError, tts.iter_speech_tokens, "Hello.", voice=3)


def test_settings_at_the_edge_of_their_range_are_taken(tts: nightingale.TTS) -> None:
    for edge in (
        {"seed": 2**64 - 1},
        {"temperature": 0},
        {"min_p": 0, "top_p": 1},
        {"min_p": 1, "top_p": 0},
        {"cfg_weight": 0, "exaggeration": 0},
    ):
        tokens = tts.speech_tokens("Hello.", max_tokens=2, **edge)
        assert 0 <= tokens.min() <= tokens.max() < 8194, edge


@pytest.mark.parametrize("language", ["xx", "english", "", None])
def test_an_unknown_language_gets_the_list_of_known_ones(
    tts: nightingale.TTS, language: Any
) -> None:
    message = error_of(ValueError, tts.speech_tokens, "Hello.", language=language)
    assert f"unknown language {language!r}" in message
    assert message.endswith(", ".join(tts.languages))


def test_the_english_model_speaks_only_english(checkpoints: Path) -> None:
    english = nightingale.load(checkpoints / "english", device="cpu")
    message = error_of(ValueError, english.speech_tokens, "Bonjour.", language="fr")
    assert message.startswith("unknown language 'fr'; this model speaks en; for French load ")


@pytest.mark.skipif(_core.gpu_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_an_error(checkpoint: Path) -> None:
    message = error_of(nightingale.Error, nightingale.load, checkpoint, device="gpu")
    assert "device='gpu', but this MLX finds none" in message
    assert "device='cpu'" in message


@pytest.mark.parametrize(
    ("name", "value", "phrase"),
    [
        ("bits", 3, "bits must be 8, 4 or None, not 3"),
        ("kv_bits", 3, "kv_bits must be 8, 4 or None, not 3"),
        ("kv_bits", 8.0, "kv_bits must be 8, 4 or None, not 8.0"),
        ("kv_budget", 0, "kv_budget must be above 0 and at most 1, not 0.0"),
        ("kv_budget", 1.5, "kv_budget must be above 0 and at most 1, not 1.5"),
        ("kv_budget", "half", "kv_budget must be a number, not 'half'"),
        ("device", "tpu", "device must be one of auto, cpu, gpu, not 'tpu'"),
        ("device", None, "device must be one of auto, cpu, gpu, not None"),
        ("dtype", "int8", "dtype must be one of float32, float16, bfloat16, not 'int8'"),
        ("dtype", 16, "dtype must be one of float32, float16, bfloat16, not 16"),
        ("threads", 0, "threads must be a whole number from 1 to 1024, not 0"),
        ("threads", -2, "threads must be a whole number from 1 to 1024, not -2"),
        ("threads", 1.5, "threads must be a whole number from 1 to 1024, not 1.5"),
        ("threads", True, "threads must be a whole number from 1 to 1024, not True"),
        ("threads", "2", "threads must be a whole number from 1 to 1024, not '2'"),
    ],
)
def test_a_load_option_out_of_range_is_refused(
    checkpoint: Path, name: str, value: Any, phrase: str
) -> None:
    threads = _core.threads()
    try:
        assert error_of(ValueError, nightingale.load, checkpoint, **{name: value}) == phrase
        assert _core.threads() == threads
    finally:
        _core.set_threads(threads)


def test_load_without_a_model_says_what_to_give(no_embedded_checkpoint: None) -> None:
    message = error_of(nightingale.Error, nightingale.load)
    assert "no model was named" in message
    assert "give a folder, or a hub id such as ResembleAI/chatterbox" in message


@pytest.mark.parametrize("model", ["no-such-folder", "no/such/folder", "no such/folder"])
def test_a_folder_that_is_not_there(model: str) -> None:
    message = error_of(nightingale.Error, nightingale.load, model)
    assert message == f"there is no folder {model}, and it is not a hub id (owner/name)"


def test_an_empty_name_is_not_the_current_folder(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(checkpoint)
    error_of(ValueError, nightingale.load, "")


def test_a_file_in_place_of_the_folder(checkpoint: Path) -> None:
    message = error_of(nightingale.Error, nightingale.load, checkpoint / T3_FILE)
    assert message.startswith(f"{checkpoint / T3_FILE} is a file; expected the folder")


def test_a_folder_without_t3(checkpoint: Path, tmp_path: Path) -> None:
    folder = replaced(checkpoint, tmp_path, T3_FILE, None)
    message = error_of(nightingale.Error, nightingale.load, folder)
    names = ("mtl23ls_v2", "mtl23ls_v3", "23lang", "cfg", "turbo_v1", "nano_v1")
    expected = ", ".join(f"t3_{name}.safetensors" for name in names)
    assert message == f"{folder} has no T3 checkpoint; expected one of {expected}"


def test_a_folder_without_tokenizer(checkpoint: Path, tmp_path: Path) -> None:
    folder = replaced(checkpoint, tmp_path, TOKENIZER, None)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert message == f"{folder} has {T3_FILE} (multilingual v2) but not its tokenizer, {TOKENIZER}"


def test_a_folder_without_voice_loads_and_asks_for_one(checkpoint: Path, tmp_path: Path) -> None:
    tts = nightingale.load(replaced(checkpoint, tmp_path, "conds.pt", None), device="cpu")
    assert tts.voices == []
    message = error_of(ValueError, tts.speech_tokens, "Hello.")
    assert "has no voice of its own; name a voice or the path" in message


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"model":\n\n}', "\x00"])
def test_a_broken_tokenizer(checkpoint: Path, tmp_path: Path, content: str) -> None:
    folder = replaced(checkpoint, tmp_path, TOKENIZER, content)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert message.startswith(f"{folder / TOKENIZER} is not a tokenizer file: ")


def test_a_tokenizer_of_another_kind(checkpoint: Path, tmp_path: Path) -> None:
    content = '{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}'
    folder = replaced(checkpoint, tmp_path, TOKENIZER, content)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert message == f"{folder / TOKENIZER} has no [START] token"


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        ("", "invalid JSON at byte 0: expected a value"),
        ("{", "invalid JSON at byte 1"),
        ('{"t3": {"analyser": yes}}', "invalid JSON at byte 20: expected a value"),
        ('{"t3": {}}{', "invalid JSON at byte 10: expected the end of the text"),
        ('{"t3": {}, "t3": {}}', "the key 't3' appears twice"),
        ('{"t3": {"analyser": 1}}', "t3.analyser: expected a boolean, found an integer"),
        ('{"t3": {"stop_at_repeat": 0}}', "t3.stop_at_repeat: expected a boolean"),
        ('{"t3": {"alignment_heads": 3}}', "t3.alignment_heads: expected an array"),
        ('{"t3": {"alignment_heads": [1, 2]}}', "t3.alignment_heads entry: expected an array"),
        ('{"t3": {"alignment_heads": [[1, 2, 3]]}}', "each entry must be [layer, head]"),
        ('{"t3": {"alignment_heads": [["a", 2]]}}', "expected an integer, found a string"),
        ('{"t3": {"repetition_penalty": "big"}}', "t3.repetition_penalty: expected a number"),
        ('{"t3": {"alignment_heads": []}}', "t3.analyser is on but t3.alignment_heads is empty"),
        ("[]", "expected an object"),
        ('{"t3": 5}', "expected an object"),
        *(
            (
                f'{{"t3": {{"alignment_heads": [[1, 2]]}}, "languages": {languages}}}',
                "FILE: languages must be a list of codes among ar, da",
            )
            for languages in ('"en"', "[]", '["en", "xx"]', "[[]]", "null")
        ),
        *(
            (
                f'{{"t3": {{"alignment_heads": [[1, 2]], "repetition_penalty": {penalty}}}}}',
                "repetition_penalty must be above 0",
            )
            for penalty in ("0", "-1.5", "1e300")
        ),
    ],
)
def test_broken_settings(checkpoint: Path, tmp_path: Path, content: str, phrase: str) -> None:
    folder = replaced(checkpoint, tmp_path, SETTINGS, content)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert phrase.replace("FILE", str(folder / SETTINGS)) in message


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"t3": {"analyser": 1}}',
    ],
)
def test_broken_settings_are_named_by_file(checkpoint: Path, tmp_path: Path, content: str) -> None:
    folder = replaced(checkpoint, tmp_path, SETTINGS, content)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert str(folder / SETTINGS) in message


@pytest.mark.parametrize(
    "head",
    [
        "[4, 0]",
        "[1, 3]",
        "[-1, 0]",
        "[4294967297, 0]",
    ],
)
def test_settings_that_name_a_head_the_model_has_not(
    checkpoint: Path, tmp_path: Path, head: str
) -> None:
    content = f'{{"t3": {{"alignment_heads": [[1, 2], {head}]}}}}'
    folder = replaced(checkpoint, tmp_path, SETTINGS, content)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert f"alignment head {head} does not exist" in message
    assert (
        "the model has 4 layers of 3 heads; set t3.alignment_heads in nightingale.json" in message
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], "s3gen: expected an object"),
        ({"steps": 4}, "s3gen has no setting steps, only lookahead, prompt_tokens, temperature"),
        ({"temperature": -0.1}, "s3gen.temperature must be a number from 0 to 2, not -0.1"),
        ({"temperature": True}, "s3gen.temperature must be a number from 0 to 2, not True"),
        ({"temperature": "low"}, "s3gen.temperature must be a number from 0 to 2, not 'low'"),
        ({"lookahead": 2}, "s3gen.lookahead must be a whole number from 3 to 100, not 2"),
        ({"lookahead": 5.0}, "s3gen.lookahead must be a whole number from 3 to 100, not 5.0"),
        ({"prompt_tokens": -1}, "s3gen.prompt_tokens must be a whole number, 0 or more, not -1"),
        ({"prompt_tokens": 1.5}, "s3gen.prompt_tokens must be a whole number, 0 or more, not 1.5"),
    ],
)
def test_settings_of_the_flow_that_make_no_sense(
    checkpoint: Path, tmp_path: Path, given: object, expected: str
) -> None:
    folder = with_settings(checkpoint, tmp_path, s3gen=given)
    message = error_of(nightingale.Error, nightingale.load, folder)
    assert f"{folder / SETTINGS}: {expected}" in message
