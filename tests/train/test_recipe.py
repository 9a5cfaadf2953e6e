"""How the stages are run side by side; tests/train/test_export.py runs them."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from train import recipe


def run_of(out: Path, **options: object) -> recipe.Run:
    common = {"corpus": "corpus", "out": out, "minutes": 1.0, "resume": None, "device": []}
    return recipe.Run(argparse.Namespace(**common, **{"slice": [], "of": {}, **options}))


class Recorded(recipe.Run):
    """Runs nothing."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.commands: dict[str, str] = {}

    def run(self, name: str, command: list[object], until: float) -> bool:
        self.commands[name] = " ".join(map(str, command))
        return True


def test_stages_go_on_from_earlier_weights_but_those_that_others_depend_on(tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    for stage in ("speech_tokenizer", "t3"):
        (earlier / f"{stage}.safetensors").write_text(stage)
        (earlier / f"{stage}.json").write_text("{}")
    run = Recorded(run_of(tmp_path / "out").options)
    run.options.resume = earlier
    assert run.all() == []
    assert run.commands.keys() == {"vocoder", "tokens", "speakers", "embed", "t3", "flow"}
    assert (tmp_path / "out" / "speech_tokenizer.safetensors").read_text() == "speech_tokenizer"
    assert f"--resume {earlier / 't3.safetensors'}" in run.commands["t3"]
    assert "--resume" not in run.commands["flow"]
    assert "--distil" in run.commands["flow"]


def test_what_fails_is_tried_twice_and_named(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.train("no_such_stage", run.end)
    assert run.failed == ["no_such_stage"]
    assert (tmp_path / "logs" / "no_such_stage.log").read_text().count("No module named") == 2


class Failing(Recorded):
    """Fails the first time, having saved something."""

    def run(self, name: str, command: list[object], until: float) -> bool:
        again = name in self.commands
        (self.options.out / f"{name}.safetensors").write_text("saved")
        return super().run(name, command, until) and again


def test_what_failed_goes_on_from_what_it_saved(tmp_path: Path) -> None:
    run = Failing(run_of(tmp_path).options)
    run.train("t3", run.began + recipe.WORTH_WHILE + 10)
    assert run.commands["t3"].endswith(f"--resume {tmp_path / 't3.safetensors'}")
    assert run.failed == []


def test_what_failed_at_last_is_left_at_what_it_saved(tmp_path: Path) -> None:
    run = Failing(run_of(tmp_path).options)
    run.train("t3", run.began + recipe.WORTH_WHILE - 10)
    assert "--resume" not in run.commands["t3"]
    assert run.failed == []


def test_t3_and_flow_wait_for_tokens(tmp_path: Path) -> None:
    class WithoutTokens(Recorded):
        def run(self, name: str, command: list[object], until: float) -> bool:
            return super().run(name, command, until) and name != "tokens"

    run = WithoutTokens(run_of(tmp_path).options)
    assert run.all() == ["tokens"]
    assert not {"t3", "flow"} & run.commands.keys()


def test_what_overstays_is_asked_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "SAVING", 0.2)
    run = run_of(tmp_path)
    asleep = ["timeit", "-n", "1", "-r", "1", "-s", "import time", "time.sleep(600)"]
    assert not run.run("asleep", asleep, run.began)
    assert run.running == set()


def test_what_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "SAVING", 1.0)
    monkeypatch.setattr(recipe, "ENDING", 0.2)
    run = run_of(tmp_path)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    asleep = ["timeit", "-n", "1", "-r", "1", "-s", deaf, "time.sleep(600)"]
    assert not run.run("asleep", asleep, run.began)
    assert run.running == set()
