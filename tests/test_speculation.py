"""Drafts: the same tokens, audio and reports as without, and clear refusals."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import _core, loading
from nightingale.engine import Engine
from nightingale.options import SpeechOptions
from tools.synthetic import write_checkpoint

from .command import run

pytestmark = pytest.mark.slow

TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "No.",
    "One two one two one two one two, and again one two one two.",
    "It was, all things considered, not the worst of mornings.",
)
COUNT = 30


@pytest.fixture(scope="module")
def small_draft(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another small model, with other weights."""
    folder = tmp_path_factory.mktemp("drafts") / "small"
    write_checkpoint(folder, seed=5)
    return folder


@pytest.fixture(scope="module")
def speakers(checkpoint: Path, small_draft: Path) -> dict[str, nightingale.TTS]:
    """By their draft; `itself` is the model as its own."""
    choices = {
        "ngram": "ngram",
        "layers": "layers",
        "small": small_draft,
        "itself": checkpoint / "t3_mtl23ls_v2.safetensors",
    }
    return {
        name: nightingale.load(checkpoint, draft=draft, device="cpu")
        for name, draft in choices.items()
    }


@pytest.fixture(scope="module")
def plain(checkpoint: Path) -> nightingale.TTS:
    return nightingale.load(checkpoint, device="cpu")


@pytest.mark.parametrize("temperature", [0.0001, 0.8])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_draft_changes_a_token(
    plain: nightingale.TTS, speakers: dict[str, nightingale.TTS], seed: int, temperature: float
) -> None:
    for text in TEXTS:
        settings = {"seed": seed, "temperature": temperature, "max_tokens": COUNT}
        settings["cfg_weight"] = 0.0 if seed == 2 else 0.5
        expected = plain.speech_tokens(text, **settings)
        for name, tts in speakers.items():
            found = tts.speech_tokens(text, **settings)
            np.testing.assert_array_equal(found, expected, err_msg=f"{name}: {text}")


@pytest.mark.parametrize("quantized", [{"bits": 8}, {"bits": 4, "kv_bits": 4}, {"kv_bits": 8}])
def test_quantized_neither_drafts_nor_batches_change_a_token(
    quick_checkpoint: Path, quantized: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "First this is said. Then that is said, too. And this is the last of it."
    together = nightingale.load(quick_checkpoint, device="cpu", **quantized)
    drafted = nightingale.load(quick_checkpoint, device="cpu", draft="layers", **quantized)
    found = [tts.generate(text, max_tokens=COUNT) for tts in (together, drafted)]
    monkeypatch.setattr(Engine, "speaks_together", False)
    alone = together.generate(text, max_tokens=COUNT)
    for audio in found:
        np.testing.assert_array_equal(audio.tokens, alone.tokens)
        np.testing.assert_array_equal(audio.samples, alone.samples)


def speech_of(
    engine: Engine, tts: nightingale.TTS, text: str, **settings: object
) -> _core.SpeechTokens:
    chosen = tts._voice(None)
    options = SpeechOptions(
        exaggeration=0.5, repetition_penalty=2.0, seed=3, max_tokens=COUNT
    ).resolved({})
    return engine.speak(tts.tokenize(text), chosen, options, **settings)


def test_every_number_of_proposals_gives_the_same_reports(
    plain: nightingale.TTS, speakers: dict[str, nightingale.TTS]
) -> None:
    def reports(tts: nightingale.TTS, **settings: object) -> list[tuple[int, int, int]]:
        speech = speech_of(tts._engine, tts, TEXTS[0], **settings)
        told = []
        while (token := speech.next()) is not None:
            told.append((token, speech.text_position, speech.stop_forced))
        return told

    expected = reports(plain)
    for (name, tts), proposals in itertools.product(speakers.items(), (1, 2, 4, 7)):
        assert reports(tts, proposals=proposals) == expected, f"{name}, {proposals}"


def test_the_model_as_its_own_draft_is_right_where_the_analyser_keeps_still(
    speakers: dict[str, nightingale.TTS],
) -> None:
    tts = speakers["itself"]
    speech = speech_of(tts._engine, tts, TEXTS[0], proposals=4)
    tokens = list(iter(speech.next, None))
    counts = speech.speculation
    assert counts["proposed"] > 10
    assert counts["accepted"] > 0.8 * counts["proposed"]
    # The prompt brings the first token, and every round one more than was accepted.
    assert counts["rounds"] + counts["accepted"] >= len(tokens) - 2


def test_info_counts_what_the_draft_brought(checkpoint: Path) -> None:
    tts = nightingale.load(checkpoint, draft="layers", device="cpu")
    nothing = {"utterances": 0, "rounds": 0, "proposed": 0, "accepted": 0}
    assert tts.info["draft"] == {"draft": "layers", **nothing}
    tts.speech_tokens(TEXTS[0], max_tokens=COUNT)
    found = tts.info["draft"]
    assert found["utterances"] == 1
    assert 0 < found["rounds"] <= found["proposed"]
    assert 0 <= found["accepted"] <= found["proposed"]
    assert "draft" not in nightingale.load(checkpoint, device="cpu").info


def test_audio_and_words_are_those_of_plain_speech(quick_checkpoint: Path) -> None:
    text = "First this is said. Then that is said, too."
    plain = nightingale.load(quick_checkpoint, device="cpu").generate(text, max_tokens=COUNT)
    drafted = nightingale.load(quick_checkpoint, device="cpu", draft="ngram").generate(
        text, max_tokens=COUNT
    )
    np.testing.assert_array_equal(drafted.tokens, plain.tokens)
    np.testing.assert_array_equal(drafted.samples, plain.samples)
    assert drafted.words == plain.words


def test_a_run_broken_off_leaves_the_next_one_alone(
    plain: nightingale.TTS, speakers: dict[str, nightingale.TTS]
) -> None:
    expected = plain.speech_tokens(TEXTS[0], max_tokens=COUNT).tolist()
    for tts in speakers.values():
        stream = tts.iter_speech_tokens(TEXTS[0], max_tokens=COUNT)
        assert list(itertools.islice(stream, 7)) == expected[:7]
        stream.close()
        assert list(tts.iter_speech_tokens(TEXTS[0], max_tokens=COUNT)) == expected


@pytest.mark.parametrize("draft", ["nowhere", "", 3])
def test_a_draft_that_is_none_is_refused(checkpoint: Path, draft: object) -> None:
    with pytest.raises((ValueError, nightingale.Error), match="draft must be ngram, layers"):
        nightingale.load(checkpoint, draft=draft, device="cpu")


def test_a_draft_of_other_tokens_is_refused(checkpoints: Path) -> None:
    with pytest.raises(nightingale.Error, match="text vocabulary of 704, the model 2454"):
        nightingale.load(checkpoints / "multilingual", draft=checkpoints / "english", device="cpu")


def test_a_draft_needs_a_cpu(checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading._core, "gpu_available", lambda: True)
    with pytest.raises(nightingale.Error, match="draft needs a CPU"):
        nightingale.load(checkpoint, draft="ngram", device="gpu")


def test_the_command_line_takes_a_draft(checkpoint: Path) -> None:
    words = ("tokens", TEXTS[0], "--model", str(checkpoint), "--max-tokens", "12")
    plain, drafted = run(*words), run(*words, "--draft", "layers")
    assert drafted.returncode == 0
    assert drafted.stdout == plain.stdout
    refused = run(*words, "--draft", "nowhere")
    assert refused.returncode != 0
    assert "draft must be ngram, layers" in refused.stderr
