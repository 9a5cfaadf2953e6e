"""Models in 8 and 4 bits: quantised at load, ahead, and as folders of their own."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

import nightingale
from nightingale import _core, cli, quantized_cache
from nightingale._core import T3, Vocoder
from nightingale.options import LoadOptions
from nightingale.quantization import notes_of, s3gen_bits, t3_bits, write_quantized
from nightingale.safetensors_writer import write_safetensors
from nightingale.torch_file import open_tensors
from tools.synthetic import S3GEN_SIZES, s3gen_weights

from .command import names_in, run

HEAD = "speech_head.weight"
MATRIX = "tfmr.layers.0.mlp.down_proj.weight"
TEXT = np.arange(5, 25, dtype=np.int32)
SPEECH = np.array([6561, 12, 900, 4, 6000], np.int32)


def quantize(*args: str | Path) -> int:
    return cli.main(["quantize", *map(str, args)])


@pytest.mark.parametrize("bits", [8, 4])
def test_ahead_and_at_load_are_the_same_bits(
    bits: int, checkpoint: Path, t3_file: Path, cache: Path, device: str
) -> None:
    at_load = nightingale.load(checkpoint, bits=bits, device=device)
    assert not cache.exists()
    assert quantize(checkpoint, "--bits", bits) == 0
    assert names_in(cache) == [quantized_cache.cached_path(t3_file, bits).name]
    ahead = nightingale.load(checkpoint, bits=bits, device=device)
    assert ahead.info["t3"] == at_load.info["t3"]
    assert ahead.info["t3"]["bits"] == bits
    spoken = [tts.speech_tokens("Hello there.", seed=3, max_tokens=20) for tts in (at_load, ahead)]
    np.testing.assert_array_equal(*spoken)
    both = [tts.t3_logits(TEXT, SPEECH, voice="default") for tts in (at_load, ahead)]
    np.testing.assert_array_equal(*both)


def test_quantized_weights_take_the_room_they_should(t3_file: Path) -> None:
    file = open_tensors(t3_file)
    bits = {name: t3_bits(4)(file, name) for name in file.names()}
    assert bits[HEAD] == 8
    assert bits[MATRIX] == 4
    assert {name for name in bits if bits[name]} == {
        name for name in file.names() if name == HEAD or name.endswith("_proj.weight")
    }
    unused = ("text_head.weight", "tfmr.embed_tokens.weight")

    def nbytes(name: str) -> int:
        size = int(np.prod(file.shape(name)))
        vector = len(file.shape(name)) == 1 or name.endswith("query")
        floats = 4 if vector else 2  # on a CPU
        return size * bits[name] // 8 + size // 64 * 4 if bits[name] else size * floats

    model, _ = T3.load(open_tensors(t3_file), LoadOptions(bits=4))
    expected = sum(nbytes(name) for name in file.names() if name not in unused)
    # The last tile of the head's rows is filled up.
    assert model.describe()["weight_bytes"] == pytest.approx(expected, rel=1e-3)
    assert model.describe()["dtype"] == "float16"


def test_mlx_reads_the_file(t3_file: Path, tmp_path: Path) -> None:
    target = tmp_path / "t3.safetensors"
    write_quantized(t3_file, target, t3_bits(4))
    tensors = mx.load(str(target))
    read = open_tensors(target)
    for name, bits in ((MATRIX, 4), (HEAD, 8)):
        prefix = name.removesuffix(".weight")
        scales, biases = tensors[prefix + ".scales"], tensors[prefix + ".biases"]
        assert scales.dtype == mx.float16
        floats = [part.astype(mx.float32) for part in (scales, biases)]
        dense = np.array(mx.dequantize(tensors[name], *floats, group_size=64, bits=bits))
        np.testing.assert_allclose(dense, read.read(name), rtol=0, atol=1e-6)
        source = open_tensors(t3_file).read(name)
        steps = np.repeat(np.abs(np.array(floats[0])), 64, axis=1)
        assert (np.abs(dense - source) <= 2 * steps).all()
        assert np.abs(dense - source).mean() < 0.3 * steps.mean()
        assert read.bits(name) == bits
    kept = "text_emb.weight"
    np.testing.assert_array_equal(np.array(tensors[kept]), open_tensors(t3_file).read(kept))


def test_a_quantized_folder_is_a_checkpoint(
    checkpoint: Path, tts: nightingale.TTS, cache: Path, tmp_path: Path, device: str
) -> None:
    folder = tmp_path / "small"
    assert quantize(checkpoint, "--bits", 8, "-o", folder, "--s3gen") == 0
    assert not cache.exists()
    shutil.copytree(folder, tmp_path / "copied")
    shutil.rmtree(folder)
    small = nightingale.load(tmp_path / "copied", device=device)
    assert small.info["t3"]["bits"] == 8
    assert tts.info["t3"]["bits"] is None
    same = ("analyser", "alignment", "repetition_penalty", "layers", "hidden", "ffn")
    assert [small.info["t3"][key] for key in same] == [tts.info["t3"][key] for key in same]
    assert small.info["flow"]["dtype"] == "float32"
    assert small.info["bakes_voices"]
    whole = nightingale.load(checkpoint, bits=8, device=device)
    spoken = [each.speech_tokens("Hello.", max_tokens=15) for each in (small, whole)]
    np.testing.assert_array_equal(*spoken)


@pytest.mark.slow
@pytest.mark.parametrize("stored", [False, True])
def test_the_mel_of_s3gen_in_8_bits_is_near_that_of_floats(
    stored: bool, checkpoint: Path, tmp_path: Path, keep_threads: None
) -> None:
    tts = nightingale.load(checkpoint, device="cpu")
    if stored:
        assert quantize(checkpoint, "-o", tmp_path / "small", "--s3gen") == 0
        small = nightingale.load(tmp_path / "small", device="cpu")
    else:
        small = nightingale.load(checkpoint, bits=8, device="cpu")
    assert (small.info["flow"]["bits"], tts.info["flow"]["bits"]) == (8, None)
    assert small.info["flow"]["weight_bytes"] < 0.7 * tts.info["flow"]["weight_bytes"]
    tokens = np.arange(0, 6000, 150)
    mels = [each.mel(tokens, voice="default") for each in (small, tts)]
    assert not np.array_equal(*mels)
    assert np.corrcoef(mels[0].ravel(), mels[1].ravel())[0, 1] > 0.999
    _core.set_threads(1)
    np.testing.assert_array_equal(small.mel(tokens, voice="default"), mels[0])


def test_s3gen_is_in_8_bits_also_where_t3_has_4(checkpoint: Path) -> None:
    four, eight = (nightingale.load(checkpoint, bits=bits, device="cpu") for bits in (4, 8))
    assert four.info["flow"] == eight.info["flow"]
    assert four.info["vocoder"] == eight.info["vocoder"]


def test_sound_in_8_bits_is_near_that_of_floats(tmp_path: Path) -> None:
    # The blocks of the small model are narrower than a group of weights.
    wide = replace(S3GEN_SIZES["small"], vocoder=512)
    tensors = {
        name: weights.values(0, name)
        for name, weights in s3gen_weights(wide).items()
        if name.startswith("mel2wav.")
    }
    path = tmp_path / "vocoder.safetensors"
    write_safetensors(path, tensors)
    rng = np.random.default_rng(0)
    mel = rng.normal(-6, 2, (40, 80)).astype(np.float32)
    sounds = {}
    for bits in (0, 8):
        vocoder, _ = Vocoder.load(open_tensors(path), LoadOptions(bits=bits or None))
        sounds[bits] = vocoder.feed(vocoder.begin(seed=1), mel, last=True)
    error = np.square(sounds[8] - sounds[0]).mean()
    assert 10 * np.log10(np.square(sounds[0]).mean() / error) > 35


@pytest.mark.slow
def test_with_tables_whatever_can_be_is_quantized(
    checkpoint: Path, tts: nightingale.TTS, tmp_path: Path, device: str
) -> None:
    folder = tmp_path / "smallest"
    assert quantize(checkpoint, "-o", folder, "--s3gen", "--tables") == 0
    flat = 0
    for path in folder.glob("*.safetensors"):
        source = next(checkpoint.glob(f"{path.stem}.*"))
        if notes_of(path) is None:
            continue
        stored, before = open_tensors(path), open_tensors(source)
        for name in before.names():
            shape, floats = before.shape(name), before.read(name)
            assert stored.shape(name) == shape
            can_be = len(shape) > 1 and floats.size >= 1024 and floats.size % 64 == 0
            can_be &= "f0_predictor" not in name
            if not can_be or floats.dtype != np.float32:
                np.testing.assert_array_equal(stored.read(name), floats)
                continue
            whole_groups = floats[0].size % 64 == 0
            assert stored.bits(name) == (8 if whole_groups else 0)
            flat += not whole_groups
            groups = floats.reshape(-1, 64)
            steps = (groups.max(1) - groups.min(1)).repeat(64) / 255
            error = np.abs(stored.read(name) - floats).ravel()
            assert (error <= 2 * steps + 1e-6).all()
    assert flat > 10
    small = nightingale.load(folder, device=device)
    mels = [each.mel(np.arange(0, 6000, 150), voice="default") for each in (small, tts)]
    assert np.corrcoef(mels[0].ravel(), mels[1].ravel())[0, 1] > 0.999
    assert small.generate("Hello.", max_tokens=15).samples.any()
    sounds = [each.vocode(mels[0]) for each in (small, tts)]
    lost = np.square(sounds[0] - sounds[1]).mean()
    assert 10 * np.log10(np.square(sounds[1]).mean() / lost) > 25


def test_s3gen_keeps_its_ends_in_floats(checkpoint: Path) -> None:
    path = next(checkpoint.glob("s3gen*"))
    file = open_tensors(path)
    bits = {name: s3gen_bits(file, name) for name in file.names()}
    assert bits["flow.input_embedding.weight"] == 0
    assert bits["flow.encoder_proj.weight"] == 0
    assert bits["flow.encoder.encoders.0.feed_forward.w_1.weight"] == 8
    sizes = {name: int(np.prod(file.shape(name))) for name in file.names()}
    coded = sum(sizes[name] for name in bits if bits[name])
    assert coded > 0.6 * sum(sizes.values())
    assert all(len(file.shape(name)) > 1 for name in bits if bits[name])


def test_unknown_tensors_stay_and_are_told(
    tiny_source: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = open_tensors(tiny_source)
    tensors = {name: file.read(name) for name in file.names()}
    tensors["extra.weight"] = np.arange(64, dtype=np.int32).reshape(1, 64)
    write_safetensors(tmp_path / "more.safetensors", tensors)
    write_quantized(tmp_path / "more.safetensors", tmp_path / "out.safetensors", t3_bits(8))
    _, unknown = T3.load(open_tensors(tmp_path / "out.safetensors"), LoadOptions())
    assert unknown == ["extra.weight"]
    np.testing.assert_array_equal(
        open_tensors(tmp_path / "out.safetensors").read("extra.weight"),
        tensors["extra.weight"],
    )


def test_other_bits_than_the_file_has_are_an_error(tiny_source: Path, tmp_path: Path) -> None:
    target = tmp_path / "t3.safetensors"
    write_quantized(tiny_source, target, t3_bits(8))
    assert T3.load(open_tensors(target), LoadOptions())[0].describe()["bits"] == 8
    assert T3.load(open_tensors(target), LoadOptions(bits=8))[0].describe()["bits"] == 8
    expected = "is quantized to 8 bits, which cannot be loaded as 4: ask for none or 8"
    with pytest.raises(nightingale.Error, match=expected):
        T3.load(open_tensors(target), LoadOptions(bits=4))
    with pytest.raises(nightingale.Error, match="is quantised already, in 8 bits"):
        write_quantized(target, tmp_path / "again.safetensors", t3_bits(4))
    assert names_in(tmp_path) == ["t3.safetensors"]


def test_nothing_is_replaced_unasked(
    checkpoint: Path, cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quantize(checkpoint, "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    path = Path(answer["path"])
    assert (answer["bits"], answer["bytes"]) == (8, path.stat().st_size)
    before = path.stat().st_ino
    assert quantize(checkpoint) == 1
    assert f"{path} exists; --force makes it again" in capsys.readouterr().err
    assert path.stat().st_ino == before
    assert quantize(checkpoint, "--force") == 0
    assert path.stat().st_ino != before

    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "conds.pt").write_text("mine")
    assert quantize(checkpoint, "-o", tmp_path / "out") == 1
    assert names_in(tmp_path / "out") == ["conds.pt"]
    assert (tmp_path / "out" / "conds.pt").read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["{model}", "-o", "{model}"], "is the model's own folder"),
        (["{model}", "--force", "-o", "{model}/../multilingual"], "is the model's own folder"),
        (["{model}", "--s3gen"], "--s3gen needs -o FOLDER"),
        (["{model}", "--tables"], "--tables needs -o FOLDER"),
        (["{model}", "-o", "{file}/x"], "Not a directory"),
        (["{file}"], "is a file; expected the folder"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    args: list[str],
    message: str,
    checkpoint: Path,
    cache: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "file").write_text("mine")
    before = names_in(checkpoint)
    filled = [arg.format(model=checkpoint, file=tmp_path / "file") for arg in args]
    assert quantize(*filled) == 1
    out, errors = capsys.readouterr()
    assert out == ""
    assert errors.count("\n") == 1
    assert message in errors
    assert names_in(checkpoint) == before
    assert not cache.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_locked_folder_is_told(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    done = run("quantize", checkpoint, "-o", tmp_path / "locked")
    assert done.returncode == 1
    assert os.strerror(errno.EACCES) in done.stderr
    assert names_in(tmp_path / "locked") == []


@pytest.mark.parametrize("size", [5000, 9_000_000])
def test_a_full_disk_leaves_no_file(size: int, checkpoint: Path, tmp_path: Path) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    home = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = run("quantize", checkpoint, env=home, preexec_fn=limit_files)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("nightingale: cannot write ")
    assert done.stderr.endswith(f": {os.strerror(errno.EFBIG)}\n")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from nightingale.quantization import t3_bits, write_quantized

def stop(done, total):
    if done > total / 2:
        os.kill(os.getpid(), getattr(signal, sys.argv[3]))

write_quantized(Path(sys.argv[1]), Path(sys.argv[2]), t3_bits(8), progress=stop)
"""


@pytest.mark.parametrize(("name", "left"), [("SIGINT", 0), ("SIGKILL", 1)])
def test_an_interrupted_quantize_leaves_nothing_under_its_name(
    name: str, left: int, tiny_source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "t3.safetensors"
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, tiny_source, target, name],
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == -getattr(signal, name)
    assert not target.exists()
    assert len(list(tmp_path.iterdir())) == left
    assert all(path.name.endswith(".partial") for path in tmp_path.iterdir())


def test_speaking_takes_bits(checkpoint: Path, tmp_path: Path) -> None:
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    command = ("tokens", "Hello.", "--model", checkpoint, "--max-tokens", "8", "--json")
    spoken = run(*command, "--bits", "8", env=env)
    assert spoken.returncode == 0, spoken.stderr
    ahead = run("quantize", checkpoint, env=env)
    assert ahead.returncode == 0, ahead.stderr
    assert Path(ahead.stdout.strip()).is_relative_to(tmp_path)
    assert run(*command, "--bits", "8", env=env).stdout == spoken.stdout
    assert "invalid choice: 3" in run(*command, "--bits", "3", env=env).stderr


def test_progress_reaches_the_end(tiny_source: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    target = tmp_path / "t3.safetensors"
    write_quantized(
        tiny_source, target, t3_bits(8), progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
