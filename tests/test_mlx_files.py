"""Conversions by mlx-audio: one file under names of its own, in MLX's order."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import hub
from nightingale.checkpoint import find_checkpoint, holds_model
from nightingale.mlx_files import S3GEN, T3, open_part
from nightingale.quantization import write_folder
from nightingale.text.byte_level import ByteLevelTokenizer
from nightingale.torch_file import open_tensors
from tools.synthetic import write_checkpoint
from tools.synthetic.mlx_conversion import write_conversion

from .recordings import speech as recording

MODEL = "model.safetensors"
UNREAD = ("tokenizer.", "speaker_encoder.")
MERGED = r"parametrizations\.weight\.original[01]"


@pytest.fixture(scope="module")
def conversion(checkpoints: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mlx") / "v3"
    write_conversion(checkpoints / "multilingual-v3", folder)
    return folder


@pytest.fixture(scope="module")
def original(checkpoints: Path) -> nightingale.TTS:
    return nightingale.load(checkpoints / "multilingual-v3", device="cpu")


def test_it_speaks_as_the_original(conversion: Path, original: nightingale.TTS) -> None:
    tts = nightingale.load(conversion, device="cpu")
    assert tts.info["family"] == "multilingual v3"
    assert (tts.voices, tts.languages) == (original.voices, original.languages)
    same = ("analyser", "alignment", "repetition_penalty", "layers", "dtype", "bits")
    assert [tts.info["t3"][name] for name in same] == [original.info["t3"][name] for name in same]
    text, speech = original.tokenize("good morning."), [6561, 17, 4000, 25]
    np.testing.assert_array_equal(tts.t3_logits(text, speech), original.t3_logits(text, speech))
    tokens = np.arange(8) * 700
    mel = original.mel(tokens, steps=2)
    np.testing.assert_array_equal(tts.mel(tokens, steps=2), mel)
    # mlx-audio multiplies the vocoder's weight norm out, which rounds.
    sound = original.vocode(mel)
    assert np.abs(tts.vocode(mel) - sound).max() < 1e-4 * np.abs(sound).max()


def test_every_tensor_has_its_official_name_and_shape(checkpoints: Path, conversion: Path) -> None:
    source = checkpoints / "multilingual-v3"
    official = open_tensors(source / "t3_mtl23ls_v3.safetensors")
    found = open_part(conversion / MODEL, T3)
    assert found.names() == official.names()
    assert all(found.shape(name) == official.shape(name) for name in found.names())

    flow, found = open_tensors(source / "s3gen.pt"), open_part(conversion / MODEL, S3GEN)
    expected = {re.sub(MERGED, "weight", name) for name in flow.names()}
    assert set(found.names()) == {name for name in expected if not name.startswith(UNREAD)}
    for name in set(found.names()) & set(flow.names()):
        assert found.shape(name) == flow.shape(name), name


@pytest.fixture(scope="module")
def turbo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mlx") / "turbo"
    write_checkpoint(folder, model="turbo", dtype="float16")
    return folder


def test_turbo_speaks_as_the_original(turbo: Path, tmp_path: Path) -> None:
    write_conversion(turbo, tmp_path)
    original, tts = (nightingale.load(folder, device="cpu") for folder in (turbo, tmp_path))
    assert tts.info["family"] == "turbo"
    assert tts.info["sound_tags"] == original.info["sound_tags"] != []
    assert (tts.voices, tts.info["t3"]) == (original.voices, original.info["t3"])
    text, speech = original.tokenize("Oh, [laugh] the “llama” went home."), [6561, 17, 4000, 25]
    np.testing.assert_array_equal(tts.tokenize("Oh, [laugh] the “llama” went home."), text)
    np.testing.assert_array_equal(tts.t3_logits(text, speech), original.t3_logits(text, speech))
    tokens = np.arange(8) * 700
    mel = original.mel(tokens)
    np.testing.assert_array_equal(tts.mel(tokens), mel)
    # The vocoder's weight norm is multiplied out and rounded to float16.
    sound = original.vocode(mel)
    assert np.corrcoef(tts.vocode(mel), sound)[0, 1] > 0.99


def test_every_tensor_of_turbo_has_its_official_name_and_shape(turbo: Path, tmp_path: Path) -> None:
    write_conversion(turbo, tmp_path)
    for name, part in (("t3_turbo_v1", T3), ("s3gen_meanflow", S3GEN)):
        official, found = (
            open_tensors(turbo / f"{name}.safetensors"),
            open_part(tmp_path / MODEL, part),
        )
        expected = {re.sub(MERGED, "weight", name) for name in official.names()}
        assert set(found.names()) == {name for name in expected if not name.startswith(UNREAD)}
        for name in set(found.names()) & set(official.names()):
            assert found.shape(name) == official.shape(name), name


@pytest.mark.parametrize("bits", [8, 4])
def test_packed_matrices_of_turbo_are_used_as_they_are(
    turbo: Path, tmp_path: Path, bits: int
) -> None:
    write_conversion(turbo, tmp_path, bits)
    file = open_part(tmp_path / MODEL, T3)
    assert file.bits("tfmr.h.0.attn.c_attn.weight") == bits
    assert file.bits("speech_head.weight") == 0
    packed = nightingale.load(tmp_path, kv_bits=None, device="cpu")
    quantized = nightingale.load(turbo, bits=bits, kv_bits=None, device="cpu")
    assert packed.info["t3"]["bits"] == bits
    text, speech = packed.tokenize("Hello there."), [6561, 17, 4000]
    np.testing.assert_array_equal(packed.t3_logits(text, speech), quantized.t3_logits(text, speech))


def test_turbo_is_read_with_its_three_tokenizer_files_too(turbo: Path, tmp_path: Path) -> None:
    write_conversion(turbo, tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    with pytest.raises(nightingale.Error, match=r"\(turbo\) but not its tokenizer.json"):
        find_checkpoint(tmp_path)
    for name in ("vocab.json", "merges.txt", "added_tokens.json"):
        (tmp_path / name).symlink_to(turbo / name)
    assert find_checkpoint(tmp_path).tokenizer.name == "vocab.json"


@pytest.mark.parametrize(
    "content",
    [b"[]", b"{}", b'{"model": {"vocab": {"a": 0}, "merges": ["a b"]}, "added_tokens": []}'],
)
def test_a_wrong_tokenizer_of_turbo_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(nightingale.Error, match="is not a byte-level tokenizer"):
        ByteLevelTokenizer(tmp_path / "tokenizer.json", {"en": "English"})


@pytest.mark.parametrize("bits", [8, 4])
def test_packed_matrices_are_used_as_they_are(checkpoints: Path, tmp_path: Path, bits: int) -> None:
    source = checkpoints / "english"
    write_conversion(source, tmp_path / "mlx", bits)
    file = open_part(tmp_path / "mlx" / MODEL, T3)
    name = "tfmr.layers.0.mlp.gate_proj.weight"
    assert (file.bits(name), file.bits("speech_head.weight")) == (bits, 0)
    packed = nightingale.load(tmp_path / "mlx", kv_bits=None, device="cpu")
    assert packed.info["t3"]["bits"] == bits
    assert packed.info["family"] == "english"

    exact = nightingale.load(source, device="cpu")
    text, speech = exact.tokenize("Hello there."), [6561, 17, 4000]
    logits = exact.t3_logits(text, speech)
    error = np.abs(packed.t3_logits(text, speech) - logits).max() / np.abs(logits).max()
    assert 1e-4 < error < {8: 0.05, 4: 0.5}[bits]


def test_an_english_conversion_takes_other_options_of_loading(
    checkpoints: Path, tmp_path: Path
) -> None:
    write_conversion(checkpoints / "english", tmp_path)
    tts = nightingale.load(tmp_path, bits=8, variant="english", device="cpu")
    assert tts.info["t3"]["bits"] == 8
    assert not tts.info["bakes_voices"]
    for hears in (tts.bake_voice, tts.convert):
        with pytest.raises(nightingale.Error, match="has no tokenizer of recordings: bake"):
            hears(recording(2.0, 24_000), sample_rate=24_000)
    with pytest.raises(nightingale.Error, match="has no variant 'v3'; it has english"):
        nightingale.load(tmp_path, variant="v3")
    with pytest.raises(nightingale.Error, match="is a conversion for MLX: load it with bits"):
        write_folder(find_checkpoint(tmp_path), tmp_path / "out", 8)


def rewritten(conversion: Path, folder: Path, **config: object) -> Path:
    """The conversion with other entries in its config.json."""
    for path in conversion.iterdir():
        (folder / path.name).symlink_to(path)
    content = json.loads((conversion / "config.json").read_text()) | config
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(content))
    return folder


def test_text_is_read_as_its_configuration_says(conversion: Path, tmp_path: Path) -> None:
    assert find_checkpoint(conversion).settings.text_preprocessing == "NFKD,fullcase"
    folder = rewritten(conversion, tmp_path, text_preprocessing="legacy", t3_model="v2")
    found = find_checkpoint(folder)
    assert found.settings.text_preprocessing == "NFKD,lowercase"
    assert (found.family.name, holds_model(folder)) == ("multilingual v2", True)


@pytest.mark.parametrize(
    ("config", "phrase"),
    [
        ({"model_type": "kokoro"}, "model_type is 'kokoro', expected 'chatterbox' or 'chatterbox_"),
        ({"model_type": "chatterbox_turbo"}, "is turbo, but it has 2454 text tokens, not 50276"),
        ({"t3_model": "v9"}, "config.json: t3_model is 'v9', expected one of v2, v3, v1, english"),
        ({"t3_model": "english"}, "is english, but it has 2454 text tokens, not 704"),
        ({"text_preprocessing": "upper"}, "text_preprocessing is 'upper', expected one of legacy"),
    ],
)
def test_a_wrong_configuration_is_told(
    conversion: Path, tmp_path: Path, config: dict[str, object], phrase: str
) -> None:
    with pytest.raises(nightingale.Error) as caught:
        find_checkpoint(rewritten(conversion, tmp_path, **config))
    assert phrase in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"\x08", b"\xff" * 64, b"\x02\0\0\0\0\0\0\0[]", b"\x02\0\0\0\0\0\0\0{}"],
)
def test_a_damaged_file_is_told(conversion: Path, tmp_path: Path, content: bytes) -> None:
    rewritten(conversion, tmp_path)
    (tmp_path / MODEL).unlink()
    (tmp_path / MODEL).write_bytes(content)
    with pytest.raises(nightingale.Error) as caught:
        find_checkpoint(tmp_path)
    assert str(tmp_path / MODEL) in str(caught.value)


def test_a_truncated_file_is_told(conversion: Path, tmp_path: Path) -> None:
    rewritten(conversion, tmp_path)
    data = (conversion / MODEL).read_bytes()
    (tmp_path / MODEL).unlink()
    (tmp_path / MODEL).write_bytes(data[: len(data) // 2])
    with pytest.raises(nightingale.Error, match="file is truncated: tensor '"):
        find_checkpoint(tmp_path)


def test_of_a_repository_the_conversion_is_wanted() -> None:
    names = ["README.md", "config.json", MODEL, "tokenizer.json", "conds.safetensors"]
    wanted = hub._wanted("mlx-community/model", names)
    assert wanted[:4] == [MODEL, "config.json", "tokenizer.json", "Cangjie5_TC.json"]
    with pytest.raises(nightingale.Error, match="has no T3 checkpoint"):
        hub._wanted("owner/other", [MODEL])
