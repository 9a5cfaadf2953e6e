"""How the stages are run side by side; tests/train/test_export.py runs them."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from train import recipe


def run_of(out: Path, **options: object) -> recipe.Run:
    common = {"corpus": "corpus", "out": out, "minutes": 1.0, "resume": None, "device": []}
    common |= {
        "slice": [],
        "of": {},
        "train": set(recipe.STAGES),
        "tokenizer_time": 0.2,
        "t3_time": 1.0,
    }
    return recipe.Run(argparse.Namespace(**common | options))


class Recorded(recipe.Run):
    """Runs nothing."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.commands: dict[str, str] = {}

    def run(self, name: str, command: list[object], until: float) -> bool:
        self.commands[name] = " ".join(map(str, command))
        return True


def earlier_run(folder: Path, *names: str) -> Path:
    """A folder with such weights, whose content is their name."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.safetensors").write_text(name)
        (folder / f"{name}.json").write_text("{}")
    return folder


def test_stages_go_on_from_earlier_weights_or_stay_as_they_are(tmp_path: Path) -> None:
    names = ("speech_tokenizer", "speech_tokenizer_heads", "t3", "flow", "meanflow", "vocoder")
    earlier, out = earlier_run(tmp_path / "earlier", *names), tmp_path / "out"
    given = {"resume": earlier, "train": {"speech_tokenizer", "t3"}}
    run = Recorded(run_of(out, **given).options)
    assert run.all() == []
    assert run.commands.keys() == {"speech_tokenizer", "tokens", "speakers", "embed", "t3"}
    for stage in ("speech_tokenizer", "t3"):
        assert f"--resume {earlier / stage}.safetensors" in run.commands[stage]
        assert not (out / f"{stage}.safetensors").exists()
    assert "--resume" not in run.commands["speakers"], "there are none to go on from"
    for stage in ("flow", "meanflow", "vocoder"):
        assert (out / f"{stage}.safetensors").read_text() == stage


def test_t3_may_end_before_the_flow(tmp_path: Path) -> None:
    run = Recorded(run_of(tmp_path / "out", t3_time=0.25).options)
    run.all()
    ends = {}
    for stage in ("t3", "flow"):
        words = run.commands[stage].split()
        ends[stage] = float(words[words.index("--until") + 1])
    assert ends["flow"] == run.end
    assert ends["t3"] - run.began == pytest.approx(0.25 * (run.end - run.began), abs=5)


def test_what_others_depend_on_stays_unless_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, out = earlier_run(tmp_path / "earlier", "speech_tokenizer", "flow"), tmp_path / "out"
    runs: list[Recorded] = []

    def run(options: argparse.Namespace) -> Recorded:
        runs.append(Recorded(options))
        return runs[-1]

    monkeypatch.setattr(recipe, "Run", run)
    recipe.main(["corpus", str(out), "--resume", str(earlier)])
    assert (out / "speech_tokenizer.safetensors").read_text() == "speech_tokenizer"
    assert runs[0].commands.keys() == {
        "vocoder",
        "tokens",
        "speakers",
        "embed",
        "ear",
        "t3",
        "flow",
    }
    assert f"--resume {earlier / 'flow.safetensors'}" in runs[0].commands["flow"]
    assert "--distil" in runs[0].commands["flow"]
    assert f"--ear {out / 'ear.safetensors'}" in runs[0].commands["flow"]


@pytest.mark.parametrize(
    ("options", "told"),
    [(["--train", "t3"], "--resume has to bring"), (["--train", "t4", "--resume", "x"], "t4")],
)
def test_stages_that_cannot_be_left_out(
    options: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        recipe.main(["corpus", str(tmp_path), *options])
    assert told in capsys.readouterr().err


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


class Without(Recorded):
    """Fails at one of its commands."""

    lacking = ""

    def run(self, name: str, command: list[object], until: float) -> bool:
        return super().run(name, command, until) and name != self.lacking


def test_t3_and_flow_wait_for_tokens(tmp_path: Path) -> None:
    run = Without(run_of(tmp_path).options)
    run.lacking = "tokens"
    assert run.all() == ["tokens"]
    assert not {"t3", "flow"} & run.commands.keys()


def test_a_flow_whose_ear_failed_learns_without_it(tmp_path: Path) -> None:
    run = Without(run_of(tmp_path).options)
    run.lacking = "ear"
    assert run.all() == ["ear"]
    assert "--ear" not in run.commands["flow"]


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
