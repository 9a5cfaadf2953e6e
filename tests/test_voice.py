"""Voices: files, and what can be given as voice=."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import Voice
from nightingale.safetensors_writer import write_safetensors
from tools import synthetic
from tools.synthetic.torch_file import write_torch


@pytest.fixture(scope="module")
def voice(tmp_path_factory: pytest.TempPathFactory) -> Voice:
    """One of the official length."""
    path = tmp_path_factory.mktemp("voice") / "conds.pt"
    write_torch(path, synthetic.default_voice())
    return Voice.load(path)


def assert_equal(found: Voice, expected: Voice) -> None:
    for field in fields(Voice):
        values = getattr(found, field.name), getattr(expected, field.name)
        np.testing.assert_array_equal(*values, err_msg=field.name)
        if isinstance(values[1], np.ndarray):
            assert values[0].dtype == values[1].dtype


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_official_file_loads_without_its_batch_dimension(voice: Voice) -> None:
    official = synthetic.default_voice()
    assert voice.speaker_emb.shape == (256,)
    assert voice.cond_prompt_speech_tokens.dtype == np.int32
    assert voice.emotion_adv == 0.5
    for name in ("speaker_emb", "cond_prompt_speech_tokens"):
        np.testing.assert_array_equal(getattr(voice, name), official["t3"][name][0])
    for name in ("prompt_token", "prompt_feat", "embedding"):
        np.testing.assert_array_equal(getattr(voice, name), official["gen"][name][0])
    assert voice.prompt_feat.shape == (500, 80)


def test_save_and_load_give_the_same_values(voice: Voice, tmp_path: Path) -> None:
    voice.save(tmp_path / "me.safetensors")
    assert_equal(Voice.load(tmp_path / "me.safetensors"), voice)
    assert names_in(tmp_path) == ["me.safetensors"]


def test_a_voice_may_be_only_a_speaker(voice: Voice, tmp_path: Path) -> None:
    bare = Voice(voice.speaker_emb)
    bare.save(tmp_path / "me.safetensors")
    found = Voice.load(str(tmp_path / "me.safetensors"))
    assert_equal(found, bare)
    assert found.prompt_token is None
    assert repr(found) == "Voice(no prompt, emotion_adv=0.5)"


def test_a_repr_says_how_long_the_prompts_are(voice: Voice) -> None:
    whole = "Voice(prompt of 6.0 s for T3 and 10.0 s for S3Gen, emotion_adv=0.5)"
    assert repr(voice) == whole
    baked = replace(voice, prompt="turbo", prompt_feat=None, emotion_adv=1 / 3)
    assert repr(baked) == "Voice(prompt of 6.0 s for T3, emotion_adv=0.333333, prompt='turbo')"


SHARED = Path(__file__).parents[2] / "shared" / "data" / "conds.safetensors"


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared voice")
def test_a_real_voice_is_saved_bit_for_bit(tmp_path: Path) -> None:
    voice = Voice.load(SHARED)
    shapes = {f.name: np.shape(getattr(voice, f.name)) for f in fields(Voice)}
    assert shapes == {
        "speaker_emb": (256,),
        "cond_prompt_speech_tokens": (150,),
        "emotion_adv": (),
        "prompt_token": (157,),
        "prompt_feat": (314, 80),
        "embedding": (192,),
        "prompt": (),
    }
    voice.save(tmp_path / "me.safetensors")
    assert_equal(Voice.load(tmp_path / "me.safetensors"), voice)


def test_another_exaggeration_changes_nothing_else(voice: Voice, tmp_path: Path) -> None:
    calm = voice.with_exaggeration(0.1)
    assert (voice.emotion_adv, calm.emotion_adv) == (0.5, 0.1)
    assert_equal(calm.with_exaggeration(0.5), voice)
    calm.save(tmp_path / "me.safetensors")
    assert Voice.load(tmp_path / "me.safetensors").emotion_adv == 0.1
    assert voice.with_exaggeration(0).emotion_adv == 0
    assert voice.with_exaggeration(np.float32(2.5)).emotion_adv == 2.5


@pytest.fixture(scope="module")
def other(voice: Voice) -> Voice:
    """One that points elsewhere, with longer embeddings and other prompts."""
    return Voice(
        np.roll(voice.speaker_emb, 1),
        voice.cond_prompt_speech_tokens[:-10][::-1].copy(),
        1.5,
        voice.prompt_token[::-1].copy(),
        voice.prompt_feat + 1,
        3 * np.roll(voice.embedding, 1),
    )


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_a_mix_lies_between_two_voices(voice: Voice, other: Voice, share: float) -> None:
    mixed = voice.mixed(other, share)
    for name in ("speaker_emb", "embedding"):
        ends = [getattr(each, name) for each in (voice, other)]
        found, apart = getattr(mixed, name), cosine(*ends)
        assert found.dtype == np.float32
        lengths = [np.linalg.norm(each) for each in ends]
        expected = (1 - share) * lengths[0] + share * lengths[1]
        assert np.linalg.norm(found) == pytest.approx(expected, rel=1e-5)
        near, far = (cosine(found, each) for each in (ends if share <= 0.5 else ends[::-1]))
        assert apart < far <= near + 1e-6 < 1
        assert (near == pytest.approx(far)) == (share == 0.5)
    assert mixed.emotion_adv == 0.5 + share
    nearer = voice if share <= 0.5 else other
    np.testing.assert_array_equal(mixed.cond_prompt_speech_tokens, nearer.cond_prompt_speech_tokens)
    np.testing.assert_array_equal(mixed.prompt_token, nearer.prompt_token[:1])
    np.testing.assert_array_equal(mixed.prompt_feat, nearer.prompt_feat[:2])


def test_the_ends_of_a_mix_are_the_voices(voice: Voice, other: Voice) -> None:
    assert voice.mixed(other, 0) is voice
    assert voice.mixed(other, 1) is other
    assert_equal(voice.mixed(other, 0.25), other.mixed(voice, 0.75))
    same = voice.mixed(voice, 0.5)
    np.testing.assert_allclose(same.speaker_emb, voice.speaker_emb, rtol=1e-5)
    np.testing.assert_allclose(same.embedding, voice.embedding, rtol=1e-5)


def test_a_mix_of_voices_without_sound_has_none(voice: Voice) -> None:
    one, other = Voice(voice.speaker_emb), Voice(np.roll(voice.speaker_emb, 1), prompt="turbo")
    mixed = one.mixed(other, 0.5)
    assert (mixed.embedding, mixed.prompt_token, mixed.prompt) == (None, None, "turbo")


@pytest.mark.parametrize(
    ("change", "share", "phrase"),
    [
        ({}, -0.1, "share must be between 0 and 1, not -0.1"),
        ({}, 1.5, "share must be between 0 and 1, not 1.5"),
        ({}, np.nan, "share must be between 0 and 1, not nan"),
        ({}, "half", "share must be a number, not 'half'"),
        ({}, None, "share must be a number, not None"),
        ({"prompt": "turbo"}, 0.5,
         "the voices were baked for different models, standard and turbo: bake the recording of "
         "one again with the model of the other"),
        ({"embedding": None}, 0.5,
         "the voices cannot be mixed: embedding is not of one size in both"),
        ({"speaker_emb": np.ones(9)}, 0.5,
         "the voices cannot be mixed: speaker_emb is not of one size in both"),
        ({"embedding": np.zeros(192)}, 0.5,
         "the voices cannot be mixed: embedding of one of them is zero"),
    ],
)  # fmt: skip
def test_what_cannot_be_mixed_is_refused(
    voice: Voice, other: Voice, change: dict[str, Any], share: Any, phrase: str
) -> None:
    with pytest.raises(ValueError, match=r"share|voices") as caught:
        replace(voice, prompt="standard").mixed(replace(other, **change), share)
    assert str(caught.value) == phrase


def test_a_voice_is_mixed_with_no_other_thing(voice: Voice) -> None:
    with pytest.raises(ValueError, match="a voice is mixed with another Voice, not str"):
        voice.mixed("anna", 0.5)
    opposite = replace(voice, speaker_emb=-voice.speaker_emb)
    with pytest.raises(ValueError, match="speaker_emb of one is the other's opposite"):
        voice.mixed(opposite, 0.5)


@pytest.mark.parametrize(
    ("value", "phrase"),
    [
        (-0.1, "exaggeration must be 0 or more, not -0.1"),
        (np.nan, "exaggeration must be 0 or more, not nan"),
        (np.inf, "exaggeration must be 0 or more, not inf"),
        ("calm", "exaggeration must be a number, not 'calm'"),
        (True, "exaggeration must be a number, not True"),
        (None, "exaggeration must be a number, not None"),
    ],
)
def test_an_exaggeration_out_of_range_is_refused(voice: Voice, value: Any, phrase: str) -> None:
    with pytest.raises(ValueError, match="exaggeration") as caught:
        voice.with_exaggeration(value)
    assert str(caught.value) == phrase


@pytest.mark.parametrize("exaggeration", [0, 0.1, 0.3, 0.7, 1 / 3, 1.9, 1e-7, 12345.678])
def test_an_exaggeration_comes_back_as_the_number_it_was(
    tmp_path: Path, exaggeration: float
) -> None:
    Voice(np.zeros(256, np.float32), emotion_adv=exaggeration).save(tmp_path / "me.safetensors")
    found = Voice.load(tmp_path / "me.safetensors").emotion_adv
    assert np.float32(found) == np.float32(exaggeration)
    assert found == pytest.approx(exaggeration, rel=1e-15 if exaggeration != 1 / 3 else 1e-7)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ({"speaker_emb": np.full(256, np.nan)}, "speaker_emb holds values that are not finite"),
        ({"speaker_emb": np.zeros((1, 256))}, "speaker_emb has shape [1, 256]; expected [any]"),
        ({"speaker_emb": ["a", "b"]}, "speaker_emb must be numbers, not <U1"),
        ({"prompt_feat": np.zeros(80)}, "prompt_feat has shape [80]; expected [any, any]"),
        ({"prompt_token": np.zeros(4)}, "prompt_token must be a list of whole numbers"),
        ({"prompt_token": [2**40]}, "prompt_token holds 1099511627776 to 1099511627776"),
        ({"emotion_adv": np.nan}, "emotion_adv holds values that are not finite"),
        ({"emotion_adv": "calm"}, "emotion_adv must be a number, not 'calm'"),
    ],
)
def test_a_voice_that_could_not_be_loaded_is_not_saved(
    voice: Voice, tmp_path: Path, change: dict[str, Any], phrase: str
) -> None:
    with pytest.raises(ValueError, match=next(iter(change))) as caught:
        replace(voice, **change).save(tmp_path / "me.safetensors")
    assert str(caught.value).startswith(phrase)
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "array", "phrase"),
    [
        ("t3.speaker_emb", np.zeros(256, np.int32), "t3.speaker_emb is int32; expected floats"),
        (
            "gen.prompt_feat",
            np.zeros((2, 80), np.int64),
            "gen.prompt_feat is int64; expected floats",
        ),
        ("gen.embedding", np.zeros(192, np.uint8), "gen.embedding is uint8; expected floats"),
        ("gen.prompt_token", np.zeros(4, np.float16), "is float16; expected whole numbers"),
        ("t3.cond_prompt_speech_tokens", np.zeros(4), "is float64; expected whole numbers"),
        ("gen.prompt_token", np.array([1, 2**40]), "element 1 does not fit int32"),
        ("gen.prompt_token", np.zeros(4, bool), "is bool, which cannot be read"),
    ],
)
def test_a_tensor_of_wrong_type_is_refused(
    tmp_path: Path, name: str, array: np.ndarray, phrase: str
) -> None:
    path = tmp_path / "me.safetensors"
    write_safetensors(path, {"t3.speaker_emb": np.zeros(256, np.float32)} | {name: array})
    with pytest.raises(nightingale.Error) as caught:
        Voice.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert name in message
    assert phrase in message


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_widths_of_floats_and_tokens_load(tmp_path: Path, dtype: str) -> None:
    path = tmp_path / "me.safetensors"
    tensors = {
        "t3.speaker_emb": np.full(256, 0.25, dtype),
        "t3.cond_prompt_speech_tokens": np.array([[7, 8]], np.int64),
        "gen.prompt_token": np.array([7, 8], np.int16),
    }
    write_safetensors(path, tensors)
    voice = Voice.load(path)
    assert voice.speaker_emb.dtype == np.float32
    for tokens in (voice.cond_prompt_speech_tokens, voice.prompt_token):
        assert tokens.dtype == np.int32
        assert tokens.tolist() == [7, 8]


def test_a_file_without_a_speaker_is_not_a_voice(checkpoint: Path, tmp_path: Path) -> None:
    path = tmp_path / "me.safetensors"
    write_safetensors(path, {"gen.embedding": np.zeros(192, np.float32)})
    with pytest.raises(nightingale.Error) as caught:
        Voice.load(path)
    assert str(caught.value) == f"{path} is not a voice: it has no tensor t3.speaker_emb"
    with pytest.raises(nightingale.Error, match=r"it has no tensor t3\.speaker_emb"):
        Voice.load(checkpoint / "t3_mtl23ls_v2.safetensors")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("name", ["t3.speaker_emb", "t3.emotion_adv", "gen.prompt_feat"])
def test_values_that_are_not_finite_are_refused(tmp_path: Path, name: str, value: float) -> None:
    tensors = {
        "t3.speaker_emb": np.zeros(256, np.float32),
        "t3.emotion_adv": np.full(1, 0.5, np.float32),
        "gen.prompt_feat": np.zeros((4, 80), np.float32),
    }
    tensors[name].reshape(-1)[-1] = value
    path = tmp_path / "me.safetensors"
    write_safetensors(path, tensors)
    with pytest.raises(nightingale.Error) as caught:
        Voice.load(path)
    assert str(caught.value) == f"{path}: {name} holds values that are not finite"


@pytest.mark.parametrize(
    ("name", "shape", "phrase"),
    [
        ("t3.speaker_emb", (2, 256), "t3.speaker_emb has shape [2, 256]; expected 1 dimensions"),
        ("gen.prompt_feat", (80,), "gen.prompt_feat has shape [80]; expected 2 dimensions"),
        ("t3.emotion_adv", (0,), "t3.emotion_adv has shape [0]"),
    ],
)
def test_a_tensor_of_wrong_shape_is_refused(
    tmp_path: Path, name: str, shape: tuple[int, ...], phrase: str
) -> None:
    path = tmp_path / "me.safetensors"
    tensors = {"t3.speaker_emb": np.zeros(256, np.float32)}
    write_safetensors(path, tensors | {name: np.zeros(shape, np.float32)})
    with pytest.raises(nightingale.Error) as caught:
        Voice.load(path)
    assert str(caught.value).startswith(f"{path}: {phrase}")


def test_an_emotion_without_dimensions_is_a_number(tmp_path: Path) -> None:
    write_torch(
        tmp_path / "conds.pt",
        {"t3": {"speaker_emb": np.zeros((1, 256), np.float32), "emotion_adv": np.array(0.75)}},
    )
    assert Voice.load(tmp_path / "conds.pt").emotion_adv == 0.75


def test_an_emotion_stored_as_a_plain_number_is_read(tmp_path: Path) -> None:
    write_torch(
        tmp_path / "conds.pt",
        {"t3": {"speaker_emb": np.zeros((1, 256), np.float32), "emotion_adv": 0.75}},
    )
    assert Voice.load(tmp_path / "conds.pt").emotion_adv == 0.75


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """A disk that is full for any file past `size` bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_save_that_fails_leaves_the_old_file_and_no_other(voice: Voice, tmp_path: Path) -> None:
    path = tmp_path / "me.safetensors"
    voice.save(path)
    before = path.read_bytes()
    assert len(before) > 100_000
    with files_at_most(50_000), pytest.raises(OSError, match="File too large"):
        replace(voice, emotion_adv=2.0).save(path)
    assert path.read_bytes() == before
    assert names_in(tmp_path) == ["me.safetensors"]


def test_a_save_that_cannot_take_its_name_leaves_nothing(voice: Voice, tmp_path: Path) -> None:
    (tmp_path / "me").mkdir()
    with pytest.raises(OSError, match="me"):
        voice.save(tmp_path / "me")
    assert names_in(tmp_path) == ["me"]
    with pytest.raises(FileNotFoundError, match="missing"):
        voice.save(tmp_path / "missing" / "me.safetensors")
    assert names_in(tmp_path) == ["me"]


def test_a_voice_a_path_and_a_name_say_the_same(
    tts: nightingale.TTS, voice: Voice, tmp_path: Path
) -> None:
    saved = tmp_path / "me.safetensors"
    voice.save(saved)
    assert tts.voices == ["default"]
    expected = tts.speech_tokens("Good morning.", max_tokens=12)
    assert len(expected) == 12
    for given in (voice, "default", saved, str(saved), Path(tts.info["model"]) / "conds.pt"):
        found = tts.speech_tokens("Good morning.", voice=given, max_tokens=12)
        np.testing.assert_array_equal(found, expected, err_msg=repr(given))


def test_a_checkpoint_may_bring_voices_by_name(
    checkpoint: Path, voice: Voice, tts: nightingale.TTS, tmp_path: Path, device: str
) -> None:
    for file in checkpoint.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "voices").mkdir()
    other = replace(voice, speaker_emb=voice.speaker_emb[::-1])
    other.save(tmp_path / "voices" / "Bea.safetensors")
    several = nightingale.load(tmp_path, device=device)
    assert several.voices == ["default", "Bea"]
    expected = tts.speech_tokens("Good morning.", voice=other, max_tokens=12)
    found = several.speech_tokens("Good morning.", voice="Bea", max_tokens=12)
    np.testing.assert_array_equal(found, expected)


def test_another_voice_says_something_else(tts: nightingale.TTS, voice: Voice) -> None:
    other = replace(voice, speaker_emb=voice.speaker_emb[::-1])
    expected = tts.speech_tokens("Good morning.", max_tokens=12)
    assert (tts.speech_tokens("Good morning.", voice=other, max_tokens=12) != expected).any()


@pytest.mark.parametrize("size", [0, 255, 257])
def test_a_speaker_of_wrong_size_is_refused(tts: nightingale.TTS, voice: Voice, size: int) -> None:
    wrong = replace(voice, speaker_emb=np.ones(size, np.float32))
    with pytest.raises(ValueError, match="speaker embedding has") as caught:
        tts.speech_tokens("Hello.", voice=wrong)
    assert str(caught.value) == (
        f"the voice's speaker embedding has {size} values; this model expects 256"
    )
    with pytest.raises(ValueError, match="this model expects 256"):
        tts.t3_logits([5], [6561], voice=wrong)


def test_a_speaker_of_two_dimensions_is_refused(tts: nightingale.TTS, voice: Voice) -> None:
    with pytest.raises(ValueError, match="speaker") as caught:
        tts.speech_tokens("Hello.", voice=replace(voice, speaker_emb=np.ones((1, 256))))
    assert "\n" not in str(caught.value)


def test_prompt_tokens_outside_the_vocabulary_are_refused(
    tts: nightingale.TTS, voice: Voice
) -> None:
    wrong = replace(voice, cond_prompt_speech_tokens=np.array([7, 8194], np.int32))
    with pytest.raises(ValueError, match="prompt_tokens") as caught:
        tts.speech_tokens("Hello.", voice=wrong)
    expected = "the voice's prompt_tokens[1] is 8194; this model has ids 0 to 8193"
    assert str(caught.value) == expected
