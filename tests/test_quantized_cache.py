"""Copies in the cache: which file they belong to, and what happens to damaged ones."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import cli, quantized_cache
from nightingale._core import T3
from nightingale.options import LoadOptions
from nightingale.quantization import notes_of, t3_bits, write_quantized
from nightingale.torch_file import open_tensors

from .command import names_in

TEXT = np.arange(5, 25, dtype=np.int32)
SPEECH = np.array([6561, 12, 900, 4, 6000], np.int32)


def logits(model: T3) -> np.ndarray:
    voice = model.condition(np.full(256, 0.05, np.float32), None, 0.5)
    return model.logits(TEXT, SPEECH, voice)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_type_beside_quantized_weights_is_the_one_asked_for(
    dtype: str, checkpoint: Path, t3_file: Path, cache: Path
) -> None:
    quantized_cache.write_cached(t3_file, 8)
    cached, _ = quantized_cache.load_t3(t3_file, LoadOptions(dtype=dtype, bits=8))
    at_load, _ = T3.load(open_tensors(t3_file), LoadOptions(dtype=dtype, bits=8))
    assert cached.describe()["dtype"] == dtype
    assert cached.describe() == at_load.describe()
    np.testing.assert_array_equal(logits(cached), logits(at_load))


def test_settings_of_a_cached_copy_are_those_of_its_source(
    checkpoint: Path, tmp_path: Path, cache: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    assert cli.main(["quantize", str(folder)]) == 0
    settings = {"t3": {"alignment_heads": [[1, 0]], "repetition_penalty": 1.75}}
    (folder / "nightingale.json").write_text(json.dumps(settings))
    loaded = nightingale.load(folder, bits=8, device="cpu")
    assert loaded.info["t3"]["repetition_penalty"] == 1.75


@pytest.mark.parametrize("change", ["content", "time"])
def test_a_changed_source_has_no_cached_copy(change: str, t3_file: Path, tmp_path: Path) -> None:
    source = tmp_path / t3_file.name
    shutil.copy2(t3_file, source)
    before = quantized_cache.cached_path(source, 8)
    assert quantized_cache.cached_path(source, 8) == before
    assert quantized_cache.cached_path(source, 4) != before
    status = source.stat()
    if change == "content":
        with open(source, "r+b") as file:
            file.seek(1000)
            file.write(b"X")
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns + (change == "time")))
    assert quantized_cache.cached_path(source, 8) != before


def test_a_copy_of_another_file_is_not_taken(
    t3_file: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = quantized_cache.write_cached(t3_file, 8)
    write_quantized(t3_file, path, t3_bits(8), {"bits": 8, "source": {"name": "other"}})
    quantized_cache.load_t3(t3_file, LoadOptions(bits=8))
    assert f"{path} does not say that it was made of {t3_file}; it is made again" in caplog.text
    assert notes_of(path)["source"]["name"] == t3_file.name


@pytest.mark.slow
def test_damage_anywhere_is_found_or_harmless(tiny_source: Path, tmp_path: Path) -> None:
    path = tmp_path / "t3.safetensors"
    write_quantized(tiny_source, path, t3_bits(8))
    whole = path.read_bytes()
    expected = logits(T3.load(open_tensors(path), LoadOptions())[0])
    header = 8 + int.from_bytes(whole[:8], "little")
    draw = random.Random(5)
    places = [draw.randrange(header) for _ in range(100)]
    places += [draw.randrange(len(whole)) for _ in range(100)]
    found = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= draw.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            model, _ = T3.load(open_tensors(path), LoadOptions())
        except nightingale.Error:
            found += 1
        else:
            np.testing.assert_array_equal(logits(model), expected, err_msg=f"byte {place}")
    assert found > 150  # not, for one, in a tensor that is never read


def test_a_damaged_copy_is_made_again(
    tiny_source: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = quantized_cache.write_cached(tiny_source, 8)
    whole = path.read_bytes()
    expected = logits(quantized_cache.load_t3(tiny_source, LoadOptions(bits=8))[0])
    assert caplog.text == ""
    in_path = whole.index(str(tiny_source).encode()) + 5
    in_name_of_sum = whole.index(b"k_proj.weight") + 3
    for place in (3, in_path, in_name_of_sum, len(whole) // 2):
        caplog.clear()
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        model, _ = quantized_cache.load_t3(tiny_source, LoadOptions(bits=8))
        assert "it is made again" in caplog.text
        assert path.read_bytes() == whole
        np.testing.assert_array_equal(logits(model), expected)


@pytest.mark.parametrize("kept", [0, 7, 5000, -1])
def test_a_truncated_copy_is_made_again(
    kept: int, tiny_source: Path, cache: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = quantized_cache.write_cached(tiny_source, 4)
    whole = path.read_bytes()
    path.write_bytes(whole[:kept])
    quantized_cache.load_t3(tiny_source, LoadOptions(bits=4))
    assert "it is made again" in caplog.text
    assert path.read_bytes() == whole


def test_a_damaged_copy_that_cannot_be_replaced_is_passed_over(
    tiny_source: Path,
    cache: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = quantized_cache.write_cached(tiny_source, 8)
    path.write_bytes(path.read_bytes()[:-1])

    def refuse(*_: object) -> None:
        raise nightingale.Error("cannot write it: Read-only file system")

    monkeypatch.setattr(quantized_cache, "write_quantized", refuse)
    model, _ = quantized_cache.load_t3(tiny_source, LoadOptions(bits=8))
    assert model.describe()["bits"] == 8
    assert "Read-only file system; t3_cfg.safetensors is quantised in memory" in caplog.text


KILLED = """
import os, signal, sys
from pathlib import Path
from nightingale import quantized_cache

quantized_cache.cache_folder = lambda: Path(sys.argv[2])
kill = lambda done, total: os.kill(os.getpid(), signal.SIGKILL)
quantized_cache.write_cached(Path(sys.argv[1]), 8, kill)
"""


def test_what_a_killed_process_was_writing_is_removed(tiny_source: Path, cache: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, tiny_source, cache], timeout=60)
    assert killed.returncode == -signal.SIGKILL
    (left,) = names_in(cache)
    assert left.endswith(".partial")
    written = quantized_cache.write_cached(tiny_source, 4)
    assert names_in(cache) == [written.name]


def test_what_somebody_is_writing_stays(tiny_source: Path, cache: Path) -> None:
    others: list[Path] = []

    def write_another(*_: int) -> None:
        if not others:
            others.append(quantized_cache.write_cached(tiny_source, 4))

    written = quantized_cache.write_cached(tiny_source, 8, write_another)
    assert names_in(cache) == sorted([written.name, others[0].name])


@pytest.mark.parametrize("fate", ["gone", "changed", "not noted", "damaged"])
def test_copies_that_serve_nobody_are_removed(
    fate: str, tiny_source: Path, cache: Path, tmp_path: Path
) -> None:
    source = tmp_path / "older.safetensors"
    shutil.copy2(tiny_source, source)
    copies = [quantized_cache.write_cached(source, bits) for bits in (8, 4)]
    kept = quantized_cache.write_cached(tiny_source, 8)
    assert names_in(cache) == sorted(path.name for path in (*copies, kept))
    if fate == "gone":
        source.unlink()
    elif fate == "changed":
        os.utime(source)
    for path in copies:
        if fate == "not noted":
            notes = {key: notes_of(path)[key] for key in ("bits", "source")}
            write_quantized(source, path, t3_bits(8), notes)
        elif fate == "damaged":
            path.write_bytes(path.read_bytes()[:100])
    last = quantized_cache.write_cached(tiny_source, 4)
    assert names_in(cache) == sorted([kept.name, last.name])


def test_files_of_others_stay_in_the_cache(tiny_source: Path, cache: Path) -> None:
    names = ["mine.safetensors", ".mine.safetensors.0123abcd.partial"]
    cache.mkdir(parents=True)
    for name in names:
        (cache / name).write_text("mine")
    written = quantized_cache.write_cached(tiny_source, 8)
    assert names_in(cache) == sorted([*names, written.name])


def test_without_locks_nothing_is_removed(
    tiny_source: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = cache / f".{quantized_cache.cached_path(tiny_source, 8).name}.0123abcd.partial"
    cache.mkdir(parents=True)
    left.write_text("perhaps being written")

    def refuse(*_: object) -> None:
        raise OSError("no locks available")

    with monkeypatch.context() as context:
        context.setattr(quantized_cache.fcntl, "flock", refuse)
        quantized_cache.write_cached(tiny_source, 8)
        assert left.exists()
    quantized_cache.write_cached(tiny_source, 8)
    assert not left.exists()
