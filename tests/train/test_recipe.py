"""How the stages are run in parallel; tests/train/test_export.py runs them."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from train import recipe


def run_of(out: Path, **options: object) -> recipe.Run:
    common = {"corpus": "corpus", "out": out, "minutes": 1.0, "resume": None, "device": []}
    common |= {
        "limits": [],
        "stage_options": {},
        "train": set(recipe.STAGES),
        "new": set(),
        "tokenizer_share": 0.2,
        "t3_share": 1.0,
    }
    return recipe.Run(argparse.Namespace(**common | options))


class FakeRun(recipe.Run):
    """Runs nothing."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.commands: dict[str, str] = {}

    def run(self, name: str, command: list[object], deadline: float) -> bool:
        self.commands[name] = " ".join(map(str, command))
        return True


def earlier_run(folder: Path, *names: str) -> Path:
    """A folder with such weights, whose content is their name."""
    folder.mkdir()
    for name in names:
        (folder / f"{name}.safetensors").write_text(name)
        (folder / f"{name}.json").write_text("{}")
    return folder


def test_stages_resume_from_earlier_weights_or_are_copied(tmp_path: Path) -> None:
    names = ("speech_tokenizer", "speech_tokenizer_heads", "t3", "flow", "meanflow", "vocoder")
    earlier, out = earlier_run(tmp_path / "earlier", *names), tmp_path / "out"
    given = {"resume": earlier, "train": {"speech_tokenizer", "t3"}}
    run = FakeRun(run_of(out, **given).options)
    assert run.all() == []
    assert run.commands.keys() == {"speech_tokenizer", "tokenize", "speakers", "embed", "t3"}
    for stage in ("speech_tokenizer", "t3"):
        assert f"--resume {earlier / stage}.safetensors" in run.commands[stage]
        assert not (out / f"{stage}.safetensors").exists()
    assert "--resume" not in run.commands["speakers"], "there are none to go on from"
    for stage in ("flow", "meanflow", "vocoder"):
        assert (out / f"{stage}.safetensors").read_text() == stage


def test_a_new_tokenizer_adapts_what_continues(tmp_path: Path) -> None:
    names = ("speech_tokenizer", "speakers", "t3", "flow")
    earlier, out = earlier_run(tmp_path / "earlier", *names), tmp_path / "out"

    class Adapting(FakeRun):
        def run(self, name: str, command: list[object], deadline: float) -> bool:
            if name == "token_transfer":
                Path(str(command[-1])).parent.mkdir(exist_ok=True)
                Path(str(command[-1])).touch()
            return super().run(name, command, deadline)

    stages = {"speech_tokenizer", "t3", "flow"}
    options = run_of(out, resume=earlier, train=stages, new={"speech_tokenizer"}).options
    run = Adapting(options)
    assert run.all() == []
    assert "--resume" not in run.commands["speech_tokenizer"]
    assert str(earlier / "speech_tokenizer.safetensors") in run.commands["tokenize"]
    for stage in ("t3", "flow"):
        assert f"--resume {out / 'adapted' / stage}.safetensors" in run.commands[stage]
    assert (out / "speakers.safetensors").read_text() == "speakers"


def test_t3_may_end_before_the_flow(tmp_path: Path) -> None:
    run = FakeRun(run_of(tmp_path / "out", t3_share=0.25).options)
    run.all()
    ends = {}
    for stage in ("t3", "flow"):
        words = run.commands[stage].split()
        ends[stage] = float(words[words.index("--deadline") + 1])
    assert ends["flow"] == run.end
    assert ends["t3"] - run.began == pytest.approx(0.25 * (run.end - run.began), abs=5)


def test_encoders_are_copied_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier, out = earlier_run(tmp_path / "earlier", "speech_tokenizer", "flow"), tmp_path / "out"
    runs: list[FakeRun] = []

    def run(options: argparse.Namespace) -> FakeRun:
        runs.append(FakeRun(options))
        return runs[-1]

    monkeypatch.setattr(recipe, "Run", run)
    recipe.main(["corpus", str(out), "--resume", str(earlier)])
    assert (out / "speech_tokenizer.safetensors").read_text() == "speech_tokenizer"
    assert runs[0].commands.keys() == {
        "vocoder",
        "tokenize",
        "speakers",
        "embed",
        "phoneme_classifier",
        "t3",
        "flow",
    }
    assert f"--resume {earlier / 'flow.safetensors'}" in runs[0].commands["flow"]
    assert "--distill-share" in runs[0].commands["flow"]
    assert (
        f"--phoneme-classifier {out / 'phoneme_classifier.safetensors'}" in runs[0].commands["flow"]
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--train", "t3"], "--train needs --resume"), (["--train", "t4", "--resume", "x"], "t4")],
)
def test_stages_that_cannot_be_left_out(
    options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        recipe.main(["corpus", str(tmp_path), *options])
    assert message in capsys.readouterr().err


def test_a_failing_stage_is_tried_twice_and_named(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    run.train("no_such_stage", run.end)
    assert run.failed == ["no_such_stage"]
    assert (tmp_path / "logs" / "no_such_stage.log").read_text().count("No module named") == 2


class Failing(FakeRun):
    """Fails the first time, having saved something."""

    def run(self, name: str, command: list[object], deadline: float) -> bool:
        again = name in self.commands
        (self.options.out / f"{name}.safetensors").write_text("saved")
        return super().run(name, command, deadline) and again


def test_a_failed_stage_resumes_from_its_last_save(tmp_path: Path) -> None:
    run = Failing(run_of(tmp_path).options)
    run.train("t3", run.began + recipe.MIN_RETRY_SECONDS + 10)
    assert run.commands["t3"].endswith(f"--resume {tmp_path / 't3.safetensors'}")
    assert run.failed == []


def test_a_stage_that_fails_late_keeps_its_last_save(tmp_path: Path) -> None:
    run = Failing(run_of(tmp_path).options)
    run.train("t3", run.began + recipe.MIN_RETRY_SECONDS - 10)
    assert "--resume" not in run.commands["t3"]
    assert run.failed == []


class Without(FakeRun):
    """Fails at one of its commands."""

    lacking = ""

    def run(self, name: str, command: list[object], deadline: float) -> bool:
        return super().run(name, command, deadline) and name != self.lacking


def test_t3_and_flow_wait_for_tokens(tmp_path: Path) -> None:
    run = Without(run_of(tmp_path).options)
    run.lacking = "tokenize"
    assert run.all() == ["tokenize"]
    assert not {"t3", "flow"} & run.commands.keys()


def test_a_flow_whose_phoneme_classifier_failed_trains_without_it(tmp_path: Path) -> None:
    run = Without(run_of(tmp_path).options)
    run.lacking = "phoneme_classifier"
    assert run.all() == ["phoneme_classifier"]
    assert "--phoneme-classifier" not in run.commands["flow"]


def test_a_late_stage_is_terminated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "SAVE_SECONDS", 0.2)
    run = run_of(tmp_path)
    asleep = ["timeit", "-n", "1", "-r", "1", "-s", "import time", "time.sleep(600)"]
    assert not run.run("asleep", asleep, run.began)
    assert run.running == set()


def test_a_stage_that_ignores_sigterm_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "SAVE_SECONDS", 1.0)
    monkeypatch.setattr(recipe, "EXIT_SECONDS", 0.2)
    run = run_of(tmp_path)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    asleep = ["timeit", "-n", "1", "-r", "1", "-s", deaf, "time.sleep(600)"]
    assert not run.run("asleep", asleep, run.began)
    assert run.running == set()
