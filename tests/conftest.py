from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import nightingale
from nightingale import _core
from nightingale.synthetic import write_checkpoint


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


def pytest_configure() -> None:
    # A shell's background job ignores Ctrl-C and hands that on to every program it starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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
        write_checkpoint(root / model, model=model)
    return root


@pytest.fixture(scope="session")
def checkpoint(checkpoints: Path) -> Path:
    return checkpoints / "multilingual"


@pytest.fixture(scope="session")
def quick_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose flow takes two steps: for tests that ask for much speech."""
    folder = tmp_path_factory.mktemp("checkpoints") / "quick"
    write_checkpoint(folder, meanflow=True)
    return folder


@pytest.fixture(scope="session")
def quick_tts(quick_checkpoint: Path, device: str) -> nightingale.TTS:
    return nightingale.load(quick_checkpoint, device=device)


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
