"""Checkpoint files as users have them: in every format and dtype, damaged, or hostile."""

from __future__ import annotations

import copyreg
import logging
import os
import pickle
import random
import struct
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import _core
from nightingale.options import LoadOptions
from nightingale.safetensors_writer import stream_safetensors, write_safetensors
from nightingale.torch_file import open_tensors
from tools import synthetic
from tools.synthetic.torch_file import write_torch

from .folders import without

T3_FILE = "t3_mtl23ls_v2.safetensors"
TINY = synthetic.t3_weights(synthetic.T3Size(hidden=64, layers=2, ffn=64), text_vocabulary=704)
UNUSED = ("text_head.weight", "tfmr.embed_tokens.weight")


def read_all(path: Path) -> dict[str, np.ndarray]:
    file = open_tensors(path)
    return {name: file.read(name) for name in file.names()}


@pytest.fixture(scope="module")
def weights(checkpoint: Path) -> dict[str, np.ndarray]:
    return read_all(checkpoint / T3_FILE)


def tiny_t3(path: Path, **changes: Any) -> Path:
    """A T3 of two narrow layers; a change gives dtype and shape of a tensor, or None to drop it."""
    layout = {name: ("float32", weights.shape) for name, weights in TINY.items()}
    layout = {name: spec for name, spec in (layout | changes).items() if spec is not None}
    stream_safetensors(path, layout, lambda name: np.zeros(layout[name][1]))
    return path


def load_error(path: Path) -> str:
    with pytest.raises(nightingale.Error) as caught:
        _core.T3.load(open_tensors(path), LoadOptions())
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "name",
    [name for name in TINY if name not in UNUSED],
)
def test_a_missing_tensor_is_named(tmp_path: Path, name: str) -> None:
    message = load_error(tiny_t3(tmp_path / "t3_cfg.safetensors", **{name: None}))
    assert name in message
    assert "no" in message.split(name)[0] or "there is no such tensor" in message


def test_tensors_of_no_use_when_speaking_may_be_missing(tmp_path: Path) -> None:
    path = tiny_t3(tmp_path / "t3_cfg.safetensors", **dict.fromkeys(UNUSED))
    model, unknown = _core.T3.load(open_tensors(path), LoadOptions())
    assert model.describe()["layers"] == 2
    assert unknown == []


@pytest.mark.parametrize(
    ("name", "shape", "phrase"),
    [
        ("speech_head.weight", (8194, 128), "expected [8194, 64], found [8194, 128]"),
        ("tfmr.layers.1.mlp.down_proj.weight", (64, 63), "expected [64, 64], found [64, 63]"),
        ("tfmr.norm.weight", (64, 1), "expected [64], found [64, 1]"),
        ("cond_enc.spkr_enc.bias", (), "expected [64], found []"),
        ("text_emb.weight", (704,), "expected 2 dimensions, found shape [704]"),
    ],
)
def test_a_wrong_shape_is_told_with_the_right_one(
    tmp_path: Path, name: str, shape: tuple[int, ...], phrase: str
) -> None:
    path = tiny_t3(tmp_path / "t3_cfg.safetensors", **{name: ("float32", shape)})
    assert f"{name}: {phrase}" in load_error(path)


@pytest.mark.parametrize(
    ("name", "shape", "phrase"),
    [
        ("speech_emb.weight", (8194, 65), "hidden size 65 is not a multiple of the head size 64"),
        ("speech_emb.weight", (6562, 64), "speech vocabulary 6562 has no stop token 6562"),
        ("text_emb.weight", (255, 64), "text vocabulary 255 has no start token 255"),
    ],
)
def test_sizes_that_make_no_t3(
    tmp_path: Path, name: str, shape: tuple[int, ...], phrase: str
) -> None:
    path = tiny_t3(tmp_path / "t3_cfg.safetensors", **{name: ("float32", shape)})
    assert f"{path} is not a T3 checkpoint: {phrase}" == load_error(path)


@pytest.mark.parametrize(
    "name",
    [
        "text_emb.weight",
        "tfmr.norm.weight",
        "speech_head.weight",
    ],
)
def test_a_wrong_type_is_told_with_the_right_one(tmp_path: Path, name: str) -> None:
    path = tiny_t3(tmp_path / "t3_cfg.safetensors", **{name: ("int32", TINY[name].shape)})
    assert f"{name}: expected a float type to read as float32, found int32" in load_error(path)


@pytest.mark.parametrize(
    ("kept", "phrase"),
    [
        (0, "expected a safetensors file or a torch zip archive, found neither (0 bytes)"),
        (8, "expected a safetensors file or a torch zip archive, found neither (8 bytes)"),
        (2000, "expected at most 1992 in a file of 2000 bytes"),
        (100_000, "file is truncated: the tensors need"),
        (-1, "file is truncated: the tensors need"),
    ],
)
def test_a_truncated_file(tmp_path: Path, kept: int, phrase: str) -> None:
    path = tiny_t3(tmp_path / "t3_cfg.safetensors")
    path.write_bytes(path.read_bytes()[:kept])
    assert phrase in load_error(path)


def test_an_unknown_tensor_is_warned_of_by_name(
    checkpoint: Path,
    weights: dict[str, np.ndarray],
    tmp_path: Path,
    tts: nightingale.TTS,
    device: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    folder = without(checkpoint, tmp_path, T3_FILE)
    write_safetensors(folder / T3_FILE, weights | {"tfmr.extra.bias": np.ones(3, np.float32)})
    with caplog.at_level(logging.WARNING, "nightingale"):
        loaded = nightingale.load(folder, device=device)
    assert [record.getMessage() for record in caplog.records] == [
        f"{T3_FILE}: unknown tensor tfmr.extra.bias is not used"
    ]
    expected = tts.speech_tokens("Hello.", max_tokens=8)
    np.testing.assert_array_equal(loaded.speech_tokens("Hello.", max_tokens=8), expected)


def test_a_torch_checkpoint_speaks_as_the_safetensors_one(
    checkpoint: Path,
    weights: dict[str, np.ndarray],
    tmp_path: Path,
    tts: nightingale.TTS,
    device: str,
) -> None:
    folder = without(checkpoint, tmp_path, T3_FILE)
    write_torch(folder / "t3_mtl23ls_v2.pt", {"model": weights})
    loaded = nightingale.load(folder, device=device)
    assert loaded.info["t3"] == tts.info["t3"]
    expected = tts.speech_tokens("Good morning.", max_tokens=40)
    assert len(expected) > 20
    np.testing.assert_array_equal(loaded.speech_tokens("Good morning.", max_tokens=40), expected)


def test_safetensors_win_where_torch_files_lie_beside_them(
    checkpoint: Path, tmp_path: Path, tts: nightingale.TTS, device: str
) -> None:
    folder = without(checkpoint, tmp_path, "none of them")
    (folder / "t3_mtl23ls_v2.pt").write_bytes(b"never opened")
    voice = nightingale.Voice.load(checkpoint / "conds.pt")
    voice.save(folder / "conds.safetensors")
    (folder / "conds.pt").unlink()
    (folder / "conds.pt").write_bytes(b"never opened")
    found = nightingale.load(folder, device=device).speech_tokens("Hello.", max_tokens=8)
    np.testing.assert_array_equal(found, tts.speech_tokens("Hello.", max_tokens=8))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_short_floats_stay_short_unless_asked(
    tmp_path: Path, dtype: str, tts: nightingale.TTS, device: str
) -> None:
    synthetic.write_checkpoint(tmp_path / "model", dtype=dtype)
    file = _core.TensorFile.open(str(tmp_path / "model" / T3_FILE))
    assert {file.dtype(name) for name in file.names()} == {dtype}
    kept = nightingale.load(tmp_path / "model", device=device).info["t3"]
    assert kept["dtype"] == dtype
    assert kept["step_bytes"] * 2 == tts.info["t3"]["step_bytes"]
    widened = nightingale.load(tmp_path / "model", dtype="float32", device=device).info["t3"]
    assert widened["dtype"] == "float32"
    assert widened["step_bytes"] == tts.info["t3"]["step_bytes"]


@pytest.mark.parametrize(("dtype", "error"), [("float16", 0.02), ("bfloat16", 0.15)])
def test_dtype_converts_the_weights(
    checkpoint: Path, dtype: str, error: float, tts: nightingale.TTS, device: str
) -> None:
    text, speech = tts.tokenize("Hello."), [6561, 17, 4000]
    exact = tts.t3_logits(text, speech)
    short = nightingale.load(checkpoint, dtype=dtype, device=device)
    assert short.info["t3"]["dtype"] == dtype
    found = short.t3_logits(text, speech)
    assert found.dtype == np.float32
    assert 1e-5 < np.abs(found - exact).max() / np.abs(exact).max() < error


# What follows are attacks: pickles that Python would run.


def torch_zip(path: Path, payload: bytes) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (("data.pkl", payload), ("byteorder", b"little"), ("version", b"3\n")):
            archive.writestr(zipfile.ZipInfo(f"archive/{name}"), data)
    return path


class Call:
    """Pickles as a call of `function`."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return self.call


class Attribute:
    """Pickles as a call of a method that is looked up by a dotted name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.path,)


def by_global(target: Path) -> bytes:
    return pickle.dumps({"t3": Call(os.system, f"touch {target}")}, protocol=2)


def by_stack_global(target: Path) -> bytes:
    return pickle.dumps({"t3": Call(exec, f"open({str(target)!r}, 'w').close()")}, protocol=4)


def by_dotted_name(target: Path) -> bytes:
    return pickle.dumps({"t3": Attribute(target)}, protocol=4)


def by_class(target: Path) -> bytes:
    """INST, the oldest way to make an object, inside an otherwise plain dictionary."""
    command = f"touch {target}".encode()
    text = b"X" + struct.pack("<I", len(command)) + command
    return b"\x80\x02}X\x02\x00\x00\x00t3(" + text + b"ios\nsystem\ns."


def by_process(target: Path) -> bytes:
    return pickle.dumps([1, {"deep": (Call(subprocess.check_call, ["touch", str(target)]),)}], 5)


@pytest.mark.parametrize(
    ("attack", "name"),
    [
        (by_global, f"{os.system.__module__}.system"),
        (by_stack_global, "builtins.exec"),
        (by_dotted_name, f"{Path.touch.__module__}.Path.touch"),
        (by_class, "os.system"),
        (by_process, "subprocess.check_call"),
    ],
)
def test_a_pickle_that_would_run_code_is_refused(
    tmp_path: Path, attack: Callable[[Path], bytes], name: str
) -> None:
    target = tmp_path / "executed"
    payload = attack(target)
    pickle.loads(payload)  # the attack is real
    target.unlink()

    path = torch_zip(tmp_path / "conds.pt", payload)
    for load in (open_tensors, nightingale.Voice.load):
        with pytest.raises(nightingale.Error) as caught:
            load(str(path))
        message = str(caught.value)
        assert f"refuses to load '{name}': only tensors and plain containers" in message
        assert "\n" not in message
    assert not target.exists()


def test_a_pickle_extension_is_refused(tmp_path: Path) -> None:
    copyreg.add_extension(os.system.__module__, "system", 240)
    try:
        payload = pickle.dumps({"t3": Call(os.system, f"touch {tmp_path / 'executed'}")}, 2)
    finally:
        copyreg.remove_extension(os.system.__module__, "system", 240)
    path = torch_zip(tmp_path / "conds.pt", payload)
    with pytest.raises(nightingale.Error, match="refuses to load 'extension 240'"):
        open_tensors(path)
    assert not (tmp_path / "executed").exists()


# What follows is damage.


SMALL = {
    "t3.speaker_emb": np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 12),
    "t3.tokens": np.arange(10, dtype=np.int64),
    "gen.half": np.linspace(0, 5, 9, dtype=np.float16),
}


def small_safetensors(path: Path) -> bytes:
    write_safetensors(path, SMALL)
    return path.read_bytes()


def small_torch(path: Path) -> bytes:
    t3 = {"speaker_emb": SMALL["t3.speaker_emb"], "tokens": SMALL["t3.tokens"], "empty": None}
    write_torch(path, {"t3": t3, "gen": {"half": SMALL["gen.half"]}})
    return path.read_bytes()


def mutations(data: bytes, count: int) -> Iterator[bytes]:
    """Changed bytes, runs of zeros, cuts, losses, repetitions: the same ones every time."""
    for seed in range(count):
        chance = random.Random(seed)
        changed = bytearray(data)
        at = chance.randrange(len(data))
        length = chance.randint(1, 16)
        kind = seed % 6
        if kind == 0:
            changed[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            changed[at] = (changed[at] + chance.randint(1, 255)) % 256
        elif kind == 2:
            changed[at : at + length] = bytes(len(changed[at : at + length]))
        elif kind == 3:
            del changed[at:]
        elif kind == 4:
            del changed[at : at + length]
        else:
            changed[at:at] = changed[at : at + length]
        yield bytes(changed)


def read_or_refuse(path: Path, data: bytes) -> dict[str, np.ndarray] | None:
    """The file's tensors, or None where an Error of one line refused it."""
    path.write_bytes(data)
    try:
        return read_all(path)
    except nightingale.Error as error:
        message = str(error)
    assert str(path) in message
    assert "\n" not in message
    return None


@pytest.mark.parametrize("write", [small_safetensors, small_torch])
def test_the_undamaged_file_reads_back(tmp_path: Path, write: Callable[[Path], bytes]) -> None:
    write(tmp_path / "file")
    found = read_all(tmp_path / "file")
    assert found.keys() == SMALL.keys()
    for name, array in SMALL.items():
        np.testing.assert_array_equal(found[name], array)


def test_500_damaged_safetensors_read_or_are_refused(tmp_path: Path) -> None:
    data = small_safetensors(tmp_path / "file")
    found = [read_or_refuse(tmp_path / "file", damaged) for damaged in mutations(data, 500)]
    assert len(found) == 500
    # The format has no checksum: elements may change, but never their number.
    sizes = {sum(array.size for array in read.values()) for read in found if read is not None}
    assert sizes == {24 + 10 + 9}
    assert sum(read is None for read in found) > 250


def test_500_damaged_torch_files_read_the_same_or_are_refused(tmp_path: Path) -> None:
    data = small_torch(tmp_path / "file")
    found = [read_or_refuse(tmp_path / "file", damaged) for damaged in mutations(data, 500)]
    assert len(found) == 500
    for read in found:
        if read is not None:
            assert read.keys() == SMALL.keys()
            for name, array in SMALL.items():
                np.testing.assert_array_equal(read[name], array)
    assert sum(read is None for read in found) > 450


def test_a_damaged_header_length_is_always_refused(tmp_path: Path) -> None:
    data = small_safetensors(tmp_path / "file")
    for at in range(8):
        for bit in range(8):
            changed = bytearray(data)
            changed[at] ^= 1 << bit
            assert read_or_refuse(tmp_path / "file", bytes(changed)) is None, (at, bit)


def test_a_damaged_zip_checksum_is_always_refused(tmp_path: Path) -> None:
    data = small_torch(tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as archive:
        checksums = {struct.pack("<I", entry.CRC) for entry in archive.infolist()}
    places = [at for at in range(len(data) - 3) if data[at : at + 4] in checksums]
    assert len(places) == 2 * 6  # in the local header and in the directory
    for place in places:
        for bit in range(32):
            changed = bytearray(data)
            changed[place + bit // 8] ^= 1 << bit % 8
            assert read_or_refuse(tmp_path / "file", bytes(changed)) is None, (place, bit)


def test_damaged_elements_of_a_torch_file_are_told_by_checksum(tmp_path: Path) -> None:
    data = small_torch(tmp_path / "conds.pt")
    at = data.index(SMALL["t3.speaker_emb"].tobytes())
    (tmp_path / "conds.pt").write_bytes(data[:at] + b"\xff" + data[at + 1 :])
    with pytest.raises(
        nightingale.Error, match=r"checksum of zip entry 'conds/data/0' is \d+, exp"
    ):
        nightingale.Voice.load(tmp_path / "conds.pt")
