from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nightingale
from nightingale import _core, quantized_cache
from nightingale.safetensors_writer import write_safetensors
from tools.synthetic import write_checkpoint

from .folders import SHORT_PROMPT


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="also compare with the reference at full size (minutes, 12 GB of memory)",
    )

    parser.addoption(
        "--artefacts", metavar="FOLDER", help="where screenshots of the server's page are kept"
    )
    parser.addoption("--device", choices=("cpu", "gpu"), default="cpu", help="where models run")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--device") == "gpu":
        # The reference is compared with in float32; with ten bits a product is off by a thousandth.
        os.environ.setdefault("MLX_ENABLE_TF32", "0")
    _keep_to_own_cores()
    # A shell's background job ignores Ctrl-C and hands that on to every program it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _keep_to_own_cores() -> None:
    """Of several processes that test at once: models whose threads share cores with another's wait
    for each other more than they work."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    if sys.platform != "linux" or processes == 1:
        return
    number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
    if own := sorted(os.sched_getaffinity(0))[number::processes]:
        os.sched_setaffinity(0, own)


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by -m
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(item.get_closest_marker(mark) for mark in ("nightly", "alone", "cluster")):
            item.add_marker("slow")
    if not config.getoption("--full"):
        skip = pytest.mark.skip(reason="full size: run with --full")
        for item in items:
            if "full_size" in item.keywords:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small synthetic checkpoints: multilingual, multilingual-v3, english."""
    root = tmp_path_factory.mktemp("checkpoints")
    for model in ("multilingual", "multilingual-v3", "english"):
        write_checkpoint(root / model, model=model, s3gen_prompt_tokens=SHORT_PROMPT)
    return root


@pytest.fixture(scope="session")
def checkpoint(checkpoints: Path) -> Path:
    return checkpoints / "multilingual"


@pytest.fixture(scope="session")
def quick_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose flow takes two steps: for tests that ask for much speech."""
    folder = tmp_path_factory.mktemp("checkpoints") / "quick"
    write_checkpoint(folder, meanflow=True, s3gen_prompt_tokens=SHORT_PROMPT)
    return folder


@pytest.fixture(scope="session")
def quick_tts(quick_checkpoint: Path, device: str) -> nightingale.TTS:
    return nightingale.load(quick_checkpoint, device=device)


@pytest.fixture
def embedded_checkpoint(
    quick_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The quick one in the place of the package's own model, with a voice by name and fewer
    languages."""
    folder = tmp_path / "assets"
    shutil.copytree(quick_checkpoint, folder, copy_function=os.link)
    settings = folder / "nightingale.json"
    content = json.loads(settings.read_text("utf-8"))
    settings.unlink()  # it is a link
    settings.write_text(json.dumps(content | {"languages": ["es", "en"]}), encoding="utf-8")
    (folder / "voices").mkdir()
    nightingale.Voice.load(folder / "conds.pt").save(folder / "voices" / "Anna.safetensors")
    monkeypatch.setattr("nightingale.checkpoint.EMBEDDED", folder)
    return folder


@pytest.fixture
def no_embedded_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a source tree without the package's own model."""
    monkeypatch.setattr("nightingale.checkpoint.EMBEDDED", tmp_path / "not-there")


@pytest.fixture(scope="session")
def device(request: pytest.FixtureRequest) -> str:
    return request.config.getoption("--device")


@pytest.fixture(scope="session")
def tts(checkpoint: Path, device: str) -> nightingale.TTS:
    return nightingale.load(checkpoint, device=device)


@pytest.fixture
def keep_threads() -> Iterator[None]:
    threads = _core.threads()
    yield
    _core.set_threads(threads)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; the folder is made by what is first written."""
    folder = tmp_path / "cache" / "quantized"
    monkeypatch.setattr(quantized_cache, "cache_folder", lambda: folder)
    return folder


@pytest.fixture(scope="session")
def t3_file(checkpoint: Path) -> Path:
    return checkpoint / "t3_mtl23ls_v2.safetensors"


@pytest.fixture(scope="session")
def tiny_source(t3_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same T3 with vocabularies cut, so that it is quantised and loaded in no time."""
    file = _core.TensorFile.open(str(t3_file))
    tensors = {name: file.read(name) for name in file.names()}
    for name, rows in (("text_pos_emb.emb", 64), ("speech_pos_emb.emb", 64), ("text_emb", 300)):
        tensors[f"{name}.weight"] = tensors[f"{name}.weight"][:rows]
    for name in ("speech_emb", "speech_head"):
        tensors[f"{name}.weight"] = tensors[f"{name}.weight"][:6600]
    tensors = {name: tensors[name] for name in tensors if ".layers." not in name or ".0." in name}
    path = tmp_path_factory.mktemp("tiny") / "t3_cfg.safetensors"
    write_safetensors(path, {name: array.astype(np.float16) for name, array in tensors.items()})
    return path
