"""A batch makes a line again whenever anything has changed that its sound depends on."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import nightingale
from nightingale import batch_requests
from nightingale.batch_requests import Requests
from nightingale.checkpoint import find_checkpoint
from nightingale.manifest import Line
from nightingale.options import LoadOptions
from nightingale.quantized_cache import SAMPLES

LINE = Line(1, "Hello.", "1.wav", {})


@pytest.fixture
def model(checkpoint: Path, tmp_path: Path) -> Path:
    return shutil.copytree(checkpoint, tmp_path / "model")


def digest(model: Path, line: Line = LINE, **loading: object) -> str:
    requests = Requests(find_checkpoint(model), LoadOptions(**loading), {})
    requests.check(line.options)
    return requests.request(line).digest


def replace_unnoticed(file: Path, place: float) -> None:
    """Changes one byte; size, time of the last change, name and inode stay."""
    status = file.stat()
    position = int(place * (status.st_size - 1))
    with open(file, "r+b") as opened:
        opened.seek(position)
        byte = opened.read(1)[0]
        opened.seek(position)
        opened.write(bytes([byte ^ 1]))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    after = file.stat()
    assert (after.st_size, after.st_mtime_ns) == (status.st_size, status.st_mtime_ns)


@pytest.mark.parametrize(
    "name",
    [
        "t3_mtl23ls_v2.safetensors",
        "s3gen.pt",
        "conds.pt",
        "grapheme_mtl_merged_expanded_v1.json",
    ],
)
def test_a_replaced_file_is_noticed_although_size_and_time_are_the_same(
    model: Path, name: str
) -> None:
    before = digest(model)
    # Between the first two of the blocks that an identity by samples would look at.
    replace_unnoticed(model / name, 0.5 / SAMPLES if name.startswith(("t3", "s3gen")) else 0.99)
    assert digest(model) != before


def test_files_that_were_copied_are_the_same(model: Path) -> None:
    before = digest(model)
    for file in model.iterdir():
        if file.is_file():
            os.utime(file, (1, 1))
    assert digest(model) == before


@pytest.mark.parametrize(
    "loading",
    [{"bits": 8}, {"bits": 4}, {"dtype": "float16"}, {"kv_bits": 8}, {"kv_budget": 0.5}],
)
def test_every_way_to_load_has_a_digest_of_its_own(model: Path, loading: dict[str, object]) -> None:
    assert digest(model, **loading) != digest(model)
    assert digest(model, **loading) == digest(model, threads=1, offline=True, **loading)


def test_a_draft_is_told_by_its_content(model: Path, tmp_path: Path) -> None:
    draft = shutil.copy(model / "t3_mtl23ls_v2.safetensors", tmp_path / "draft.safetensors")
    before = digest(model, draft=draft)
    assert before != digest(model) == digest(model, draft="ngram")
    replace_unnoticed(draft, 0.5 / SAMPLES)
    assert digest(model, draft=draft) != before


def test_a_voice_of_the_model_is_told_by_its_content(embedded_checkpoint: Path) -> None:
    line = Line(1, "Hello.", "1.wav", {"voice": "Anna"})
    before = digest(embedded_checkpoint, line)
    replace_unnoticed(embedded_checkpoint / "voices" / "Anna.safetensors", 0.9)
    assert digest(embedded_checkpoint, line) != before


@pytest.mark.parametrize("package", ["nightingale-tts", "pykakasi"])
def test_another_version_makes_another_digest(
    model: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    before = digest(model)
    installed: Callable[[str], str] = batch_requests.version
    monkeypatch.setattr(
        batch_requests, "version", lambda name: "99" if name == package else installed(name)
    )
    assert digest(model) != before


def test_auto_is_the_device_that_it_takes(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightingale._core.gpu_available", lambda: False)
    on_cpu, named = digest(model), digest(model, device="cpu")
    monkeypatch.setattr("nightingale._core.gpu_available", lambda: True)
    assert digest(model) != on_cpu
    assert digest(model, device="cpu") == named


def test_settings_of_the_model_count_by_what_they_say(model: Path) -> None:
    before = digest(model)
    settings = model / "nightingale.json"
    content = json.loads(settings.read_text("utf-8"))
    settings.write_text(json.dumps(content | {"s3gen": {"temperature": 0.5}}), encoding="utf-8")
    assert digest(model) != before


def test_a_replaced_voice_of_a_language_is_noticed_where_none_is_named(model: Path) -> None:
    (model / "voices").mkdir(exist_ok=True)
    file = model / "voices" / "ff_other.safetensors"
    nightingale.Voice.load(model / "conds.pt").save(file)
    settings = json.loads((model / "nightingale.json").read_text("utf-8"))
    settings["voices"] = {"fr": "ff_other"}
    (model / "nightingale.json").write_text(json.dumps(settings), encoding="utf-8")
    own = ({"language": "fr"}, {"language": "fr-FR"}, {"language": "auto"})
    others = ({}, {"language": "fr", "voice": "default"})

    def digests() -> list[str]:
        lines = [Line(1, "Bonjour.", "1.wav", dict(options)) for options in (*own, *others)]
        return [digest(model, line) for line in lines]

    before = digests()
    replace_unnoticed(file, 0.99)
    same = [one == other for one, other in zip(before, digests(), strict=True)]
    assert same == [False, False, False, True, True]
