"""Which member of the family a folder or repository holds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import hub
from nightingale.checkpoint import find_checkpoint, holds_model
from nightingale.family import MEMBERS, Member
from nightingale.options import LoadOptions
from nightingale.quantized_cache import load_t3
from nightingale.safetensors_writer import write_safetensors

from .folders import SETTINGS, without

LAYER = {"llama": "tfmr.layers.0.x", "gpt2": "tfmr.h.0.x"}


def outline(path: Path, backbone: str, vocabulary: int, hidden: int = 1024) -> Path:
    """A file with the tensors that tell what a T3 is, and with no others."""
    tensors = {LAYER[backbone]: np.zeros(1, np.float16)}
    tensors["text_emb.weight"] = np.zeros((vocabulary, 1), np.float16)
    tensors["speech_emb.weight"] = np.zeros((1, hidden), np.float16)
    write_safetensors(path, tensors)
    return path


def members(folder: Path, *names: str) -> Path:
    """A folder with the outlines of members, and all tokenizers."""
    for member in MEMBERS:
        if member.variant in names:
            path = folder / member.t3[0]
            outline(path, member.backbone, member.text_vocabulary, member.hidden)
        for name in member.tokenizer_files:
            (folder / name).touch()
    return folder


def error_of(folder: Path, variant: str | None = None) -> str:
    with pytest.raises(nightingale.Error) as caught:
        find_checkpoint(folder, variant)
    assert "\n" not in str(caught.value)
    return str(caught.value)


VARIANTS = [member.variant for member in MEMBERS]


@pytest.mark.parametrize("member", MEMBERS, ids=VARIANTS)
def test_every_member_is_found_by_its_official_files(tmp_path: Path, member: Member) -> None:
    found = find_checkpoint(members(tmp_path, member.variant))
    assert found.family == member
    assert found.tokenizer_files == tuple(tmp_path / n for n in found.family.tokenizer_files)
    assert holds_model(tmp_path)


def test_one_folder_with_all_members_has_an_order(tmp_path: Path) -> None:
    assert VARIANTS[:6] == ["v2", "v3", "v1", "english", "turbo", "nano"]
    members(tmp_path, *VARIANTS)
    for variant in VARIANTS:
        assert find_checkpoint(tmp_path).family.variant == variant
        assert find_checkpoint(tmp_path, variant.upper()).family.variant == variant
        (tmp_path / find_checkpoint(tmp_path, variant).t3.name).unlink()
    assert "has no T3 checkpoint; expected one of t3_mtl23ls_v2.safetensors" in error_of(tmp_path)
    assert not holds_model(tmp_path)


def test_a_variant_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    members(tmp_path, "english", "nano")
    assert error_of(tmp_path, "turbo").endswith("has no variant 'turbo'; it has english, nano")


@pytest.mark.parametrize("variant", ["my_tune", "my-tune", "t3_my_tune", "t3_my_tune.safetensors"])
def test_a_file_of_an_unknown_name_is_a_variant_too(tmp_path: Path, variant: str) -> None:
    outline(members(tmp_path, "english") / "t3_my_tune.safetensors", "llama", 2454)
    assert find_checkpoint(tmp_path).family.variant == "english"
    found = find_checkpoint(tmp_path, variant)
    assert found.t3.name == "t3_my_tune.safetensors"
    assert (found.family.name, found.family.variant) == ("multilingual v3", "my_tune")


@pytest.mark.parametrize(
    ("backbone", "vocabulary", "hidden", "name"),
    [
        ("llama", 704, 1024, "english"),
        ("llama", 2352, 1024, "multilingual v1"),
        ("llama", 2454, 1024, "multilingual v3"),
        ("gpt2", 50276, 1024, "turbo"),
        ("gpt2", 50276, 768, "nano"),
    ],
)
@pytest.mark.parametrize("stem", ["t3_tune", "t3_turbo_v1", "t3_cfg"])
def test_tensors_tell_what_a_name_does_not(
    tmp_path: Path, stem: str, backbone: str, vocabulary: int, hidden: int, name: str
) -> None:
    outline(members(tmp_path) / f"{stem}.safetensors", backbone, vocabulary, hidden)
    known = {"t3_turbo_v1": "turbo"} if backbone == "gpt2" else {}
    assert find_checkpoint(tmp_path).family.name == known.get(stem, name)


def test_a_vocabulary_of_no_member_needs_a_name(tmp_path: Path) -> None:
    outline(members(tmp_path) / "t3_cfg.safetensors", "llama", 300)
    assert find_checkpoint(tmp_path).family.name == "english"
    (tmp_path / "t3_cfg.safetensors").rename(tmp_path / "t3_tune.safetensors")
    message = error_of(tmp_path)
    assert "has a llama backbone and 300 text tokens, which no known model has" in message
    assert message.endswith("704 (llama), 2352 (llama), 2454 (llama) and 50276 (gpt2)")


def test_an_s3gen_file_under_the_name_of_t3(tmp_path: Path) -> None:
    members(tmp_path)
    write_safetensors(tmp_path / "t3_cfg.safetensors", {"flow.x": np.zeros(1, np.float32)})
    message = error_of(tmp_path)
    assert message.endswith("expected text_emb.weight, speech_emb.weight and either "
                            "tfmr.layers.0.* or tfmr.h.0.*")  # fmt: skip


@pytest.mark.parametrize("missing", ["vocab.json", "merges.txt", "added_tokens.json"])
def test_a_tokenizer_that_is_not_there_is_named(tmp_path: Path, missing: str) -> None:
    (members(tmp_path, "turbo") / missing).unlink()
    expected = f"has t3_turbo_v1.safetensors (turbo) but not its tokenizer, {missing}"
    assert error_of(tmp_path).endswith(expected)


def test_turbo_prefers_the_flow_of_two_steps(tmp_path: Path) -> None:
    members(tmp_path, "turbo", "english")
    for name in ("s3gen.safetensors", "s3gen_meanflow.safetensors"):
        (tmp_path / name).touch()
    found = [find_checkpoint(tmp_path, variant).s3gen for variant in ("turbo", "english")]
    assert [path.name for path in found if path] == [
        "s3gen_meanflow.safetensors",
        "s3gen.safetensors",
    ]


def settings(
    checkpoint: Path, folder: Path, name: str, option: str | None = None, **file: object
) -> tuple[bool, float]:
    """Analyser and penalty where T3's file has this name; file: sections of nightingale.json."""
    without(checkpoint, folder, SETTINGS)
    t3 = next(folder.glob("t3_*"))
    t3.rename(folder / name)
    (folder / SETTINGS).write_text(json.dumps(file), encoding="utf-8")
    model, _ = load_t3(folder / name, LoadOptions(preset=option, device="cpu"))
    told = model.describe()
    return told["analyser"], round(told["repetition_penalty"], 6)


HEADS = {"alignment_heads": [[1, 2]]}
OLD, NEW = (True, 2.0), (False, 1.2)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t3_mtl23ls_v2.safetensors", OLD),
        ("t3_23lang.safetensors", OLD),
        ("t3_mtl23ls_v3.safetensors", NEW),
        ("t3_pt_br.safetensors", NEW),
        ("t3_my_tune.safetensors", NEW),
    ],
)
def test_the_name_of_the_file_gives_the_preset(
    checkpoint: Path, tmp_path: Path, name: str, expected: tuple[bool, float]
) -> None:
    assert settings(checkpoint, tmp_path, name, t3=HEADS) == expected


@pytest.mark.parametrize(
    ("name", "option", "file", "expected"),
    [
        ("t3_mtl23ls_v2.safetensors", "upstream", {"t3": HEADS}, NEW),
        ("t3_pt_br.safetensors", "chatterbox-0.1.7", {"t3": HEADS}, OLD),
        ("t3_mtl23ls_v2.safetensors", None, {"preset": "upstream", "t3": HEADS}, NEW),
        ("t3_x.safetensors", None, {"preset": "chatterbox-0.1.7", "t3": HEADS}, OLD),
        ("t3_x.safetensors", None, {"t3": HEADS | {"repetition_penalty": 1.5}}, (False, 1.5)),
        ("t3_x.safetensors", "chatterbox-0.1.7", {"t3": HEADS | {"analyser": False}}, OLD),
    ],
)
def test_settings_win_over_the_name_and_options_over_settings(
    checkpoint: Path,
    tmp_path: Path,
    name: str,
    option: str | None,
    file: dict[str, object],
    expected: tuple[bool, float],
) -> None:
    assert settings(checkpoint, tmp_path, name, option, **file) == expected


def test_presets_are_of_multilingual_models_alone(checkpoints: Path, tmp_path: Path) -> None:
    for i, preset in enumerate(("chatterbox-0.1.7", "upstream")):
        folder, name = tmp_path / str(i), "t3_cfg.safetensors"
        assert settings(checkpoints / "english", folder, name, preset) == (False, 1.2)


@pytest.mark.parametrize(
    ("content", "phrase"),
    [
        ({"preset": "newest"}, "preset is 'newest', expected chatterbox-0.1.7 or upstream"),
        ({"preset": 3}, "preset"),
        ({"text_preprocessing": "upper"}, "text_preprocessing must be one of 'NFKD,lowercase', "),
        ({"speaking_rate": 1}, "speaking_rate must be a list of at most 100 pairs"),
        ({"speaking_rate": []}, "speaking_rate must be"),
        ({"speaking_rate": [[1, 0.5], [0.7, 0]]}, "speaking_rate must be"),
        ({"speaking_rate": [[0.7, -0.1], [1, 0.5]]}, "speaking_rate must be"),
        ({"speaking_rate": [[1.1, 0.5], [1.4, 0.9]]}, "speaking_rate must be"),
        ({"speaking_rate": [[0.7], [1, 0.5]]}, "speaking_rate must be"),
        ({"speaking_rate": [[0.7, True], [1, 0.5]]}, "speaking_rate must be"),
        ({"voices": ["Anna"]}, "voices: expected an object"),
        ({"voices": {"xx": "Anna"}}, "voices must give a name for languages among"),
        ({"voices": {"fr": 3}}, "voices must give a name for languages among"),
        ({"voices": {"fr": "Anna"}}, "voices names 'Anna' for fr, but the folder has default"),
    ],
)
def test_settings_that_are_not_known_are_told(
    checkpoint: Path, tmp_path: Path, content: dict[str, object], phrase: str
) -> None:
    without(checkpoint, tmp_path, SETTINGS)
    (tmp_path / SETTINGS).write_text(json.dumps({"t3": HEADS, **content}), encoding="utf-8")
    with pytest.raises(nightingale.Error) as caught:
        nightingale.load(tmp_path, device="cpu")
    assert f"{SETTINGS}: {phrase}" in str(caught.value)


def test_the_tokenizer_of_another_model_is_told(checkpoints: Path, tmp_path: Path) -> None:
    without(checkpoints / "english", tmp_path, "tokenizer.json")
    other = checkpoints / "multilingual" / "grapheme_mtl_merged_expanded_v1.json"
    (tmp_path / "tokenizer.json").symlink_to(other)
    with pytest.raises(nightingale.Error) as caught:
        nightingale.load(tmp_path, device="cpu")
    message = str(caught.value)
    assert "tokenizer.json has 2454 tokens, but t3_cfg.safetensors knows 704" in message


def test_the_english_tokenizer_under_the_name_of_the_multilingual_one(
    checkpoints: Path, tmp_path: Path
) -> None:
    name = "grapheme_mtl_merged_expanded_v1.json"
    without(checkpoints / "multilingual", tmp_path, name)
    (tmp_path / name).symlink_to(checkpoints / "english" / "tokenizer.json")
    with pytest.raises(nightingale.Error, match="has no tag of any language, such as"):
        nightingale.load(tmp_path, device="cpu")


REPOSITORY = [
    "README.md",
    "t3_cfg.safetensors",
    "t3_turbo_v1.safetensors",
    "t3_pt_br.safetensors",
    "t3_tune.pt",
    "s3gen.safetensors",
    "s3gen_meanflow.safetensors",
    "ve.safetensors",
    "vocab.json",
    "tokenizer.json",
    "conds.pt",
]
SHARED = ["ve.safetensors", "conds.safetensors", "conds.pt"]


@pytest.mark.parametrize(
    ("variant", "wanted"),
    [
        (None, ["t3_cfg.safetensors", "tokenizer.json", SETTINGS, "s3gen.safetensors"]),
        (
            "turbo",
            [
                "t3_turbo_v1.safetensors",
                "vocab.json",
                "merges.txt",
                "added_tokens.json",
                SETTINGS,
                "s3gen_meanflow.safetensors",
            ],
        ),
        (
            "tune",
            [
                "t3_tune.pt",
                SETTINGS,
                "s3gen.safetensors",
                "s3gen_meanflow.safetensors",
                "tokenizer.json",
                "vocab.json",
            ],
        ),
    ],
)
def test_of_a_repository_only_the_variant_is_fetched(
    variant: str | None, wanted: list[str]
) -> None:
    assert hub._wanted("owner/model", REPOSITORY, variant) == wanted + SHARED


def test_a_variant_that_a_repository_has_not_is_told() -> None:
    expected = "owner/model has no variant 'nano'; it has english, turbo, pt-br, tune"
    with pytest.raises(nightingale.Error, match=expected):
        hub._wanted("owner/model", REPOSITORY, "nano")
