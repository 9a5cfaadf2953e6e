"""`pull`, `bench` and `doctor`."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import _core, cli
from nightingale.checkpoint import find_checkpoint
from nightingale.cli import doctor
from nightingale.torch_file import open_tensors
from tools.synthetic.torch_file import write_torch

from .command import run
from .test_hub import Hub


@pytest.fixture(scope="module")
def model(checkpoint: Path, device: str) -> list[str]:
    return ["--model", str(checkpoint), "--device", device]


@pytest.fixture
def hub(checkpoint: Path) -> Iterator[Hub]:
    with Hub() as server:
        server.files["owner/model"] = {
            path.name: path.read_bytes() for path in checkpoint.iterdir()
        }
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def environment(hub: Hub, home: Path) -> dict[str, str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    hub_settings = {"HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    return clean | hub_settings | {"NO_PROXY": "*", "HF_HUB_DISABLE_TELEMETRY": "1"}


def test_pull_prints_the_folder_that_say_then_finds(
    hub: Hub, checkpoint: Path, tmp_path: Path
) -> None:
    settings = environment(hub, tmp_path)
    done = run("pull", "owner/model", env=settings)
    assert (done.returncode, done.stderr) == (0, "")
    folder = Path(done.stdout.removesuffix("\n"))
    files = {path.name: path.stat().st_size for path in checkpoint.iterdir()}
    assert {path.name: path.stat().st_size for path in folder.iterdir()} == files

    told = json.loads(run("pull", "owner/model", "--json", env=settings).stdout)
    assert told == {
        "model": "owner/model",
        "family": "multilingual v2",
        "folder": str(folder),
        "files": files,
        "bytes": sum(files.values()),
    }


def test_pull_lists_what_a_repository_holds_and_fetches_nothing(hub: Hub, tmp_path: Path) -> None:
    hub.files["owner/model"] |= {
        "t3_turbo_v1.safetensors": b"",
        "t3_pt_br.safetensors": b"",
        "t3_mtl23ls_v2.pt": b"",
        "t3_tune.safetensors": b"",
    }
    settings = environment(hub, tmp_path)
    done = run("pull", "owner/model", "--list", env=settings)
    assert (done.returncode, done.stderr) == (0, "")
    listed = [line.split() for line in done.stdout.splitlines()]
    assert listed == [
        ["v2", "t3_mtl23ls_v2.safetensors"],
        ["turbo", "t3_turbo_v1.safetensors"],
        ["pt-br", "t3_pt_br.safetensors"],
        ["tune", "t3_tune.safetensors"],
    ]
    told = json.loads(run("pull", "owner/model", "--list", "--json", env=settings).stdout)
    assert told == {"model": "owner/model", "variants": dict(listed)}
    assert hub.asked == []


def test_pull_wants_a_hub_id(capsys: pytest.CaptureFixture[str], checkpoint: Path) -> None:
    assert cli.main(["pull", str(checkpoint)]) == 1
    expected = f"nightingale: {str(checkpoint)!r} is not a hub id (owner/name)\n"
    assert capsys.readouterr() == ("", expected)


def test_pull_converts_torch_files(
    capsys: pytest.CaptureFixture[str], checkpoint: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(checkpoint, folder)
    found = find_checkpoint(folder)
    tensors: dict[Path, dict[str, np.ndarray]] = {}
    for path in (found.t3, found.s3gen, found.voice_encoder):
        file = open_tensors(path)
        tensors[path] = {name: file.read(name) for name in file.names()}
        path.unlink()
        write_torch(path.with_suffix(".pt"), tensors[path])
    torch_files = sorted(path.name for path in folder.glob("*.pt"))
    assert len(torch_files) == 4

    assert cli.main(["pull", "--convert", str(folder)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{folder}\n"
    assert printed.err.count("wrote ") == 4
    for path, expected in tensors.items():
        converted = _core.TensorFile.open(str(path.with_suffix(".safetensors")))
        assert converted.names() == sorted(expected)
        for name, array in expected.items():
            np.testing.assert_array_equal(converted.read(name), array)
            assert converted.dtype(name) == str(array.dtype)
    voice = nightingale.Voice.load(folder / "conds.safetensors")
    assert repr(voice) == repr(nightingale.Voice.load(folder / "conds.pt"))
    assert sorted(path.name for path in folder.glob("*.pt")) == torch_files
    assert find_checkpoint(folder).t3.suffix == ".safetensors"
    assert cli.main(["pull", "--convert", str(folder)]) == 0  # again: there is nothing to do
    assert capsys.readouterr() == (f"{folder}\n", "")


@pytest.mark.slow
def test_bench_gives_every_figure_and_its_spread(
    model: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--rounds", "2", "--max-tokens", "20", "--steps", "1"]
    assert cli.main(["bench", "Hello there.", "--json", *options, *model]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (len(told["rounds"]), told["tokens"]) == (2, 20)
    assert set(told["figures"]) == {
        *("prefill", "decode", "flow", "vocoder", "total", "rtf", "stream_ttfa", "stream_rtf")
    }
    for name, figure in told["figures"].items():
        values = [each[name] for each in told["rounds"]]
        assert 0 < figure["least"] == min(values) <= figure["median"] <= figure["most"]
        assert figure["most"] == max(values)
    for each in told["rounds"]:
        assert each["rtf"] == pytest.approx(each["total"] / each["seconds"])
    assert told["model"]["family"] == "multilingual v2"


def test_bench_prints_a_table(model: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", *model, "--rounds=1", "--max-tokens=8", "--steps=1"]) == 0
    first, second, *rows = capsys.readouterr().out.splitlines()
    assert "multilingual v2, float32" in first
    assert second.startswith("8 speech tokens, ")
    assert [row[2:12] for row in rows[:2]] == ["T3: to the", "T3: speech"]
    assert len(rows) == 8


def test_bench_wants_a_round(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--rounds", "0"]) == 1
    assert capsys.readouterr().err == "nightingale: rounds must be 1 or more, not 0\n"


@pytest.mark.slow
def test_doctor_finds_all_well(model: list[str]) -> None:
    done = run("doctor", "--json", *model)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["problems"] == []
    assert told["machine"]["cores"] >= 1
    assert told["machine"]["memory_bytes"] > 2**28
    assert told["packages"]["mlx"] == told["mlx"]["version"] == _core.mlx_version()
    assert told["mlx"]["library"] in ("cpu", "cuda", "metal")
    assert (told["mlx"]["gpu"] is not None) == _core.gpu_available()
    assert told["kernels"]["simd"] == _core.simd_name()
    assert set(told["kernels"]["paths"]) == {"t3", "flow", "vocoder"}
    assert told["model"]["voices"] == ["default"]
    assert told["model"]["self_test"]["seconds"] > 0.5


def test_doctor_prints_lines_that_end_in_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line[:16].strip() for line in lines]
    for name in ("system", "processor", "memory", "packages", "mlx library", "cpu kernels"):
        assert name in names
    assert lines[-1] == "all is well"


def test_doctor_exits_with_1_where_the_model_is_broken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["doctor", "--model", str(tmp_path)]) == 1
    *_, problem, verdict = capsys.readouterr().out.splitlines()
    assert problem.startswith(f"problem: {tmp_path} has no T3 checkpoint")
    assert verdict == "something is broken"


def test_doctor_exits_with_1_where_the_model_cannot_speak(
    model: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise nightingale.Error("no breath")

    monkeypatch.setattr(nightingale.TTS, "generate", fail)
    assert cli.main(["doctor", "--json", *model]) == 1
    expected = ["it cannot say 'Hello there.': no breath"]
    assert json.loads(capsys.readouterr().out)["problems"] == expected


def test_doctor_knows_every_extra_that_people_install() -> None:
    tomllib = pytest.importorskip("tomllib")
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8")
    declared = tomllib.loads(text)["project"]["optional-dependencies"]
    for developers in ("test", "hear", "train", "browser"):
        del declared[developers]
    packages = {
        extra: {re.match(r"[\w.-]+", line)[0] for line in lines} - {"nightingale-tts"}
        for extra, lines in declared.items()
    }
    packages["languages"].add("russian-text-stresser")  # which is not on PyPI
    assert {extra: set(modules) for extra, modules in doctor.OPTIONAL.items()} == packages


def test_doctor_names_what_is_missing_or_mixed_up(monkeypatch: pytest.MonkeyPatch) -> None:
    report = {
        "machine": {"instructions": ["amx_bf16"], "cores": 2},
        "packages": {"mlx": "0.1.0", "soxr": None},
        "mlx": {
            "version": "0.32.4",
            "library": "cuda",
            "installed": {"mlx-cpu": "0.32.4", "mlx-cuda-13": "0.32.4"},
            "gpu": None,
        },
        "kernels": {"simd": "plain", "bf16": None, "threads": 3},
        "voices": {"error": "cannot read /voices: Permission denied"},
        "hub": {"cache": "/cache", "writable": False},
        "model": {"flow": {"device": "cpu", "dtype": "float32", "products": "float32"}},
    }
    monkeypatch.setattr(doctor, "_unimportable", lambda names: [])
    assert doctor._problems(report) == [
        "soxr is not installed",
        "mlx 0.1.0 is installed, but its library is 0.32.4",
        "cannot read /voices: Permission denied",
    ]
    notes = doctor._notes(report)
    assert [note.split()[0] for note in notes] == ["mlx-cpu", "MLX", "this", "this", "3", "/cache"]
    assert "the system does not let it be used" in notes[3]
    report["kernels"]["bf16"] = "avx512bf16"
    report["machine"]["instructions"] = ["avx512_bf16"]
    assert "(avx512bf16): --dtype bfloat16 or --bits 8" in doctor._notes(report)[3]
    report["model"]["flow"]["products"] = "bfloat16"
    assert not any("bfloat16" in note for note in doctor._notes(report))


def test_the_library_on_the_disk_is_told_by_its_size(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "libmlx.so").write_bytes(bytes(100))

    class File:
        name = "libmlx.so"

        def __init__(self, size: int) -> None:
            self.size = size

        def locate(self) -> Path:
            return tmp_path / self.name

    files = {"mlx-cpu": [File(50)], "mlx-cuda-13": [File(100)]}
    monkeypatch.setattr(doctor, "version", dict.fromkeys(files, "0.32.4").get)
    monkeypatch.setattr(doctor.metadata, "files", files.get)
    assert doctor.mlx_library()["library"] == "cuda"
