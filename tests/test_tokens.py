"""Speech tokens: the same on every run, stopped at any time."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap
import threading
from itertools import islice
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import nightingale
from nightingale import _core

from .command import PATIENCE
from .folders import with_settings, without

TEXT = "The quick brown fox jumps over the lazy dog."
COUNT = 40


@pytest.fixture(scope="module")
def expected(tts: nightingale.TTS) -> np.ndarray:
    tokens = tts.speech_tokens(TEXT, max_tokens=COUNT)
    assert tokens.dtype == np.int32
    assert len(tokens) == COUNT
    assert len(set(tokens.tolist())) > COUNT // 2
    return tokens


def test_the_same_seed_gives_the_same_tokens(tts: nightingale.TTS, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(tts.speech_tokens(TEXT, max_tokens=COUNT), expected)
    np.testing.assert_array_equal(tts.speech_tokens(TEXT, seed=0, max_tokens=COUNT), expected)
    assert list(tts.iter_speech_tokens(TEXT, max_tokens=COUNT)) == expected.tolist()


def test_another_seed_gives_other_tokens(tts: nightingale.TTS, expected: np.ndarray) -> None:
    drawn = [
        tuple(tts.speech_tokens(TEXT, seed=seed, max_tokens=COUNT)) for seed in (1, 2, 2**64 - 1)
    ]
    assert len({*drawn, tuple(expected)}) == 4


def test_a_freshly_loaded_model_gives_the_same_tokens(
    checkpoint: Path, device: str, expected: np.ndarray
) -> None:
    again = nightingale.load(checkpoint, device=device)
    np.testing.assert_array_equal(again.speech_tokens(TEXT, max_tokens=COUNT), expected)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.usefixtures("keep_threads")
def test_the_thread_count_changes_no_token(
    tts: nightingale.TTS, expected: np.ndarray, threads: int
) -> None:
    _core.set_threads(threads)
    assert tts.info["threads"] == threads
    np.testing.assert_array_equal(tts.speech_tokens(TEXT, max_tokens=COUNT), expected)


def test_a_run_broken_off_and_started_again_gives_the_same_tokens(
    tts: nightingale.TTS, expected: np.ndarray
) -> None:
    stream = tts.iter_speech_tokens(TEXT, max_tokens=COUNT)
    assert list(islice(stream, COUNT // 2)) == expected[: COUNT // 2].tolist()
    stream.close()
    assert list(stream) == []
    np.testing.assert_array_equal(tts.speech_tokens(TEXT, max_tokens=COUNT), expected)


def test_streams_in_turn_do_not_disturb_each_other(
    tts: nightingale.TTS, expected: np.ndarray
) -> None:
    streams = [tts.iter_speech_tokens(TEXT, seed=seed, max_tokens=COUNT) for seed in (0, 1, 0)]
    drawn = list(zip(*streams, strict=True))
    other = tts.speech_tokens(TEXT, seed=1, max_tokens=COUNT)
    assert drawn == list(zip(expected, other, expected, strict=True))


def test_calls_from_two_threads_take_turns(tts: nightingale.TTS, expected: np.ndarray) -> None:
    found: dict[int, list[np.ndarray]] = {0: [], 1: []}

    def speak(seed: int) -> None:
        for _ in range(3):
            found[seed].append(tts.speech_tokens(TEXT, seed=seed, max_tokens=COUNT))

    workers = [threading.Thread(target=speak, args=(seed,)) for seed in found]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    np.testing.assert_array_equal(found[0], [expected] * 3)
    other = tts.speech_tokens(TEXT, seed=1, max_tokens=COUNT)
    np.testing.assert_array_equal(found[1], [other] * 3)


def test_temperature_0_is_the_most_likely_token_whatever_the_seed(tts: nightingale.TTS) -> None:
    greedy = tts.speech_tokens(TEXT, temperature=0, max_tokens=COUNT)
    for settings in ({"temperature": 0, "seed": 9}, {"temperature": 0.0005, "seed": 3}):
        found = tts.speech_tokens(TEXT, max_tokens=COUNT, **settings)
        np.testing.assert_array_equal(found, greedy)
    row = tts.t3_logits(tts.tokenize(TEXT), [6561])
    assert greedy[0] == np.argmax(row[0, 0] + 0.5 * (row[0, 0] - row[1, 0]))


def test_without_guidance_the_first_row_decides(tts: nightingale.TTS) -> None:
    guided = tts.speech_tokens(TEXT, temperature=0, max_tokens=COUNT)
    plain = tts.speech_tokens(TEXT, temperature=0, cfg_weight=0, max_tokens=COUNT)
    assert (plain != guided).any()
    assert plain[0] == np.argmax(tts.t3_logits(tts.tokenize(TEXT), [6561])[0, 0])


@pytest.mark.parametrize("most", [1, 2, 7])
def test_max_tokens_is_honoured(tts: nightingale.TTS, expected: np.ndarray, most: int) -> None:
    found = tts.speech_tokens(TEXT, max_tokens=most)
    np.testing.assert_array_equal(found, expected[:most])


def test_the_stop_token_ends_a_run_and_is_not_in_it(tts: nightingale.TTS) -> None:
    tokens = tts.speech_tokens("Hello there, friend.")
    assert 0 < len(tokens) < 1000
    assert 6562 not in tokens
    longer = tts.speech_tokens("Hello there, friend.", max_tokens=2000)
    np.testing.assert_array_equal(tokens, longer)


def test_numpy_numbers_are_numbers(tts: nightingale.TTS, expected: np.ndarray) -> None:
    found = tts.speech_tokens(
        TEXT, seed=np.int64(0), temperature=np.float64(0.8), max_tokens=np.int32(COUNT)
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("model", "family", "languages", "analyser", "penalty"),
    [
        ("multilingual", "multilingual v2", 23, True, 2.0),
        ("multilingual-v3", "multilingual v3", 23, False, 1.2),
        ("english", "english", 1, False, 1.2),
    ],
)
def test_each_official_checkpoint_speaks_with_its_own_defaults(
    checkpoints: Path,
    device: str,
    model: str,
    family: str,
    languages: int,
    analyser: bool,
    penalty: float,
) -> None:
    tts = nightingale.load(checkpoints / model, device=device)
    assert tts.info["family"] == family
    assert tts.info["device"] == device
    assert tts.info["t3"]["analyser"] is analyser
    assert tts.info["t3"]["repetition_penalty"] == pytest.approx(penalty)
    assert len(tts.languages) == languages
    assert tts.languages["en"] == "English"
    found = tts.speech_tokens(TEXT, max_tokens=COUNT)
    assert len(found) == COUNT
    same = tts.speech_tokens(TEXT, repetition_penalty=penalty, max_tokens=COUNT)
    np.testing.assert_array_equal(found, same)


def with_t3(checkpoint: Path, folder: Path, **settings: object) -> Path:
    heads = {"alignment_heads": [[1, 2], [2, 1], [3, 0]]}
    return with_settings(checkpoint, folder, t3=heads | settings)


def test_the_default_penalty_is_that_of_the_settings(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS, device: str
) -> None:
    folder = with_t3(checkpoint, tmp_path, repetition_penalty=0.25)
    fond_of_repeating = nightingale.load(folder, device=device)
    found = fond_of_repeating.speech_tokens(TEXT, max_tokens=COUNT)
    same = tts.speech_tokens(TEXT, repetition_penalty=0.25, max_tokens=COUNT)
    np.testing.assert_array_equal(found, same)
    assert len(set(found.tolist())) < COUNT // 2


def test_a_model_may_go_on_after_a_token_that_comes_twice(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS, device: str
) -> None:
    repeating = {"repetition_penalty": 0.02, "temperature": 0, "max_tokens": COUNT}
    stopped = tts.speech_tokens(TEXT, **repeating)
    patient = nightingale.load(with_t3(checkpoint, tmp_path, stop_at_repeat=False), device=device)
    found = patient.speech_tokens(TEXT, **repeating)
    assert stopped[-1] == stopped[-2]
    assert len(stopped) < len(found)
    np.testing.assert_array_equal(found[: len(stopped)], stopped)


def test_languages_are_different_tags_of_one_text(tts: nightingale.TTS) -> None:
    english, french = tts.tokenize("La la."), tts.tokenize("La la.", language="FR")
    assert english.dtype == np.int32
    assert english[0] != french[0]
    np.testing.assert_array_equal(english[1:], french[1:])
    assert (
        tts.speech_tokens("La la.", max_tokens=8)
        != tts.speech_tokens("La la.", language="fr", max_tokens=8)
    ).any()


def test_a_model_speaks_the_languages_whose_tags_its_tokenizer_has(
    checkpoint: Path, tmp_path: Path, device: str
) -> None:
    name = "grapheme_mtl_merged_expanded_v1.json"
    without(checkpoint, tmp_path, name)
    tokenizer = (checkpoint / name).read_text("utf-8")
    for code in nightingale.load(checkpoint, device=device).languages:
        if code not in ("en", "fr"):
            tokenizer = tokenizer.replace(f'"[{code}]"', f'"[OTHER {code}]"')
    (tmp_path / name).write_text(tokenizer, "utf-8")
    tts = nightingale.load(tmp_path, device=device)
    assert tts.languages == {"en": "English", "fr": "French"}
    with pytest.raises(ValueError, match="unknown language 'de'; this model speaks en, fr"):
        tts.speech_tokens("Hallo.", language="de")


def test_logits_of_a_longer_run_begin_with_those_of_a_shorter(tts: nightingale.TTS) -> None:
    text = tts.tokenize(TEXT)
    whole = tts.t3_logits(text, [6561, 12, 6000, 44])
    assert whole.shape == (2, 4, 8194)
    assert whole.dtype == np.float32
    assert np.isfinite(whole).all()
    part = tts.t3_logits(text, [6561, 12])
    np.testing.assert_allclose(part, whole[:, :2], rtol=0, atol=1e-4 * np.abs(whole).max())
    assert np.abs(whole[0] - whole[1]).max() > 0.1  # the second row has no text


@pytest.mark.parametrize(
    ("text", "speech", "phrase"),
    [
        ([], [6561], "there are no text tokens to speak"),
        ([5], [], "speech_tokens is empty; its first entry should be 6561"),
        ([5, 2454], [6561], "text_tokens[1] is 2454; this model has ids 0 to 2453"),
        ([5], [6561, -1], "speech_tokens[1] is -1; this model has ids 0 to 8193"),
        ([5], [8194], "speech_tokens[0] is 8194; this model has ids 0 to 8193"),
        ([5] * 2049, [6561], "the text has 2049 tokens; this model takes 2048 at a time"),
        ([5], [6561] * 4101, "4101 speech tokens; this model has positions for 4100"),
        ([5], [[6561]], "speech_tokens"),
        ([5.5], [6561], "text_tokens"),
        ([2**32 + 5], [6561], "text_tokens"),
    ],
)
def test_logits_of_tokens_the_model_has_not(
    tts: nightingale.TTS, text: list, speech: list, phrase: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(phrase)) as caught:
        tts.t3_logits(np.array(text), np.array(speech))
    assert "\n" not in str(caught.value)


def test_many_utterances_leave_no_memory_behind(tts: nightingale.TTS) -> None:
    def speak(index: int) -> None:
        stream = tts.iter_speech_tokens("word " * (1 + index % 7), max_tokens=1 + index % 11)
        for _ in islice(stream, 1 + index % 5):  # some are broken off
            pass
        stream.close()

    for index in range(10):
        speak(index)
    before = mx.get_active_memory()
    for index in range(50):
        speak(index)
    # One utterance's cache is 0.8 MB; a GPU may still hold what its last steps used.
    assert mx.get_active_memory() < before + 2**21


def test_ctrl_c_stops_a_running_sentence(checkpoint: Path, device: str) -> None:
    program = f"""
        import nightingale
        tts = nightingale.load({str(checkpoint)!r}, device={device!r})
        try:
            while True:
                for token in tts.iter_speech_tokens("Hello. " * 20, max_tokens=4000):
                    print(token, flush=True)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            raise
        """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as speaker:
        try:
            for _ in range(5):
                assert 0 <= int(speaker.stdout.readline()) < 8194
            speaker.send_signal(signal.SIGINT)
            output, errors = speaker.communicate(timeout=PATIENCE)
        finally:
            speaker.kill()
    assert output.splitlines()[-1] == "interrupted"
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
    assert speaker.returncode == -signal.SIGINT
