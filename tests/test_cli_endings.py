"""Commands that end early: readers that leave, Ctrl-C, kills and disks that are full."""

from __future__ import annotations

import errno
import json
import os
import resource
import signal
import sys
from pathlib import Path

import pytest

from nightingale import cli

from .command import PATIENCE, names_in, run, start

pytestmark = pytest.mark.slow

LONG = "Hello there, this takes a while to say.\n\n" * 30


@pytest.fixture(scope="module")
def model(checkpoint: Path, device: str) -> list[str]:
    return ["--model", str(checkpoint), "--device", device, "--max-tokens", "30", "--steps", "2"]


@pytest.mark.parametrize("command", ["say", "stream"])
def test_a_reader_that_leaves_ends_the_work_quietly(command: str, model: list[str]) -> None:
    with start(command, LONG, "-o", "-", *model, text=False) as speaker:
        assert len(speaker.stdout.read(1000)) == 1000
        speaker.stdout.close()
        errors = speaker.stderr.read()
        assert speaker.wait(timeout=PATIENCE) == 141
    assert errors == b""


@pytest.mark.parametrize(
    ("command", "number", "status", "message"),
    [
        ("say", signal.SIGINT, 130, "nightingale: stopped\n"),
        ("stream", signal.SIGINT, 130, "nightingale: stopped\n"),
        ("stream", signal.SIGTERM, 143, ""),
    ],
)
def test_stopping_leaves_no_file(
    command: str, number: int, status: int, message: str, model: list[str], tmp_path: Path
) -> None:
    with start(command, LONG, "-o", tmp_path / "a.wav", "--words", *model) as speaker:
        try:
            assert speaker.stdout.readline().endswith("Hello\n")
            (partial,) = names_in(tmp_path)
            assert partial.startswith(".a.wav.")
            speaker.send_signal(number)
            _, errors = speaker.communicate(timeout=PATIENCE)
        finally:
            speaker.kill()
    assert (speaker.returncode, errors) == (status, message)
    assert names_in(tmp_path) == []


def test_a_kill_leaves_nothing_under_the_final_name(model: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.wav"
    path.write_text("mine")
    with start("stream", LONG, "-o", path, "--json", *model) as speaker:
        assert json.loads(speaker.stdout.readline())["index"] == 0
        speaker.kill()
    assert speaker.returncode == -signal.SIGKILL
    assert path.read_text() == "mine"
    (partial,) = set(names_in(tmp_path)) - {path.name}
    assert partial.startswith(f".{path.name}.")
    assert partial.endswith(".partial")


@pytest.mark.skipif(sys.platform != "linux", reason="Linux has /dev/full")
@pytest.mark.parametrize("args", [["-o", "-"], ["-o", "a.wav", "--json"]])
def test_standard_output_on_a_full_disk(args: list[str], model: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        pipes = {"stdout": full, "cwd": tmp_path}
        with start("say", "Hello.", *args, *model, **pipes) as speaker:
            errors = speaker.stderr.read()
    message = f"nightingale: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}\n"
    assert (speaker.returncode, errors) == (1, message)


@pytest.mark.parametrize(("command", "kind"), [("say", "wav"), ("stream", "ogg")])
def test_a_full_disk_leaves_no_file(
    command: str, kind: str, model: list[str], tmp_path: Path
) -> None:
    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    path = tmp_path / f"a.{kind}"
    done = run(command, "Hello there.", "-o", path, *model, preexec_fn=limit_files)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"nightingale: cannot write {path}: {os.strerror(errno.EFBIG)}\n"
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none/a.wav", "there is no folder {folder}/none"),
        ("file/a.wav", "there is no folder {folder}/file"),
        ("folder.wav", "it is a folder"),
        pytest.param(
            "locked/a.wav",
            os.strerror(errno.EACCES),
            marks=pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere"),
        ),
    ],
)
def test_a_file_that_cannot_be_made_is_told_before_the_model_loads(
    name: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder.wav").mkdir()
    (tmp_path / "locked").mkdir(mode=0o500)
    before = names_in(tmp_path)
    path = tmp_path / name
    assert cli.main(["say", "Hello.", "-o", str(path), "--model", str(tmp_path / "none")]) == 1
    expected = f"nightingale: cannot write {path}: {reason.format(folder=tmp_path)}\n"
    assert capsys.readouterr() == ("", expected)
    assert names_in(tmp_path) == before


def test_without_standard_streams_nothing_else_is_written_to(
    model: list[str], tmp_path: Path
) -> None:
    def close_streams() -> None:
        os.close(1)
        os.close(2)

    closed = {"stdout": None, "stderr": None, "preexec_fn": close_streams}
    with start("stream", "Hello.", "-o", tmp_path / "a.wav", *model, **closed) as speaker:
        assert speaker.wait(timeout=PATIENCE) == 0
    assert names_in(tmp_path) == ["a.wav"]
