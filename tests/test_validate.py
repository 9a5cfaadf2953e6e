"""`nightingale validate` from its options to its exit status, on a small synthetic checkpoint."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import _core, cli
from nightingale.chunks import Chunk
from nightingale.validate import baseline, plot

from .command import names_in

pytestmark = pytest.mark.slow

TEXT = "Hello there."
CHECKS = {
    "same seed: runs",
    "same seed: threads",
    "another seed",
    "stream: tokens",
    "stream: length",
    "seams: jump",
    "seams: kink",
    "stream: log-mel",
    "seams: log-mel",
    "precision: tokens",
    "precision: logits",
    "precision: sound",
    "clipping",
    "DC offset",
    "level",
    "silence",
    "bands in Hz",
    "languages",
}


@pytest.fixture(scope="module")
def model(checkpoint: Path, device: str) -> list[str]:
    return ["--model", str(checkpoint), "--device", device, "--max-tokens", "20", "--steps", "2"]


@pytest.fixture
def quick(model: list[str]) -> list[str]:
    """The cheapest run there is."""
    return ["validate", "--quick", "--runs", "2", "--text", TEXT, *model]


def verdicts(output: str) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in json.loads(output)["checks"]}


def test_a_good_model_passes_every_check(
    model: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    threads = _core.threads()
    assert cli.main(["validate", "--runs", "2", "--text", TEXT, *model, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] is True
    found = {check["name"]: check for check in report["checks"]}
    assert set(found) == CHECKS
    skipped = {name for name, check in found.items() if check["verdict"] == "skipped"}
    assert skipped <= {"same seed: threads"}
    assert all(check["bound"] for name, check in found.items() if name not in skipped)
    assert found["stream: tokens"]["values"] == {"streams": 3, "differing": 0}
    assert found["seams: jump"]["values"]["seams"] >= 3
    assert found["precision: tokens"]["values"]["tokens"].keys() == {
        "float32",
        "float16",
        "bfloat16",
    }
    settings = {"language": "en", "seed": 0, "max_tokens": 20, "steps": 2}
    assert report["inputs"]["settings"] == settings
    assert _core.threads() == threads


def test_the_table_names_what_is_not_judged(
    quick: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(quick) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[0].split() == ["check", "figure", "bound", "verdict"]
    assert "precision" in output
    assert "left out by --quick" in output
    assert output.endswith(
        "not judged: whether it speaks the words; a model that speaks noise can pass\n"
    )


def test_texts_come_from_a_file_line_by_line(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "texts.txt").write_text("One is here.\n\n  Two are there. \n", encoding="utf-8")
    where = quick.index("--text")
    command = [*quick[:where], "-f", str(tmp_path / "texts.txt"), *quick[where + 2 :], "--json"]
    assert cli.main([*command, "--seed", "5"]) == 0
    inputs = json.loads(capsys.readouterr().out)["inputs"]
    assert inputs["texts"] == ["One is here.", "Two are there."]
    assert inputs["settings"]["seed"] == 5


def without_the_end(chunks: list[Chunk]) -> list[Chunk]:
    last = chunks[-1]
    return [*chunks[:-1], replace(last, samples=last.samples[:-480])]


def with_a_click(chunks: list[Chunk]) -> list[Chunk]:
    samples = chunks[1].samples.copy()
    samples[0] = 0.99
    samples[1] = -0.99
    return [chunks[0], replace(chunks[1], samples=samples), *chunks[2:]]


def with_other_tokens(chunks: list[Chunk]) -> list[Chunk]:
    return [replace(chunks[0], tokens=chunks[0].tokens + 1), *chunks[1:]]


@pytest.mark.parametrize(
    ("damage", "failing"),
    [
        (without_the_end, {"stream: length"}),
        (with_a_click, {"seams: kink"}),
        (with_other_tokens, {"stream: tokens"}),
    ],
)
def test_a_stream_that_is_damaged_fails(
    quick: list[str],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    damage: Any,
    failing: set[str],
) -> None:
    stream = nightingale.TTS.stream

    def damaged(self: nightingale.TTS, *args: Any, **kwargs: Any) -> Iterator[Chunk]:
        return iter(damage(list(stream(self, *args, **kwargs))))

    monkeypatch.setattr(nightingale.TTS, "stream", damaged)
    assert cli.main([*quick, "--json"]) == 1
    found = verdicts(capsys.readouterr().out)
    failed = {name for name, verdict in found.items() if verdict == "fail"}
    assert failing <= failed <= failing | {"seams: jump", "seams: log-mel", "stream: log-mel"}


def damaged_generate(monkeypatch: pytest.MonkeyPatch, damage: Any) -> None:
    generate = nightingale.TTS.generate

    def damaged(self: nightingale.TTS, *args: Any, **kwargs: Any) -> nightingale.Audio:
        audio = generate(self, *args, **kwargs)
        return replace(audio, samples=damage(audio.samples))

    monkeypatch.setattr(nightingale.TTS, "generate", damaged)


def test_audio_that_changes_from_run_to_run_fails(
    quick: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = iter(np.arange(100, dtype=np.float32) * 1e-6)
    damaged_generate(monkeypatch, lambda samples: samples + next(changes))
    assert cli.main([*quick, "--json"]) == 1
    found = verdicts(capsys.readouterr().out)
    failed = {name for name, verdict in found.items() if verdict == "fail"}
    assert "same seed: runs" in failed
    assert failed <= {"same seed: runs", "same seed: threads"}


def test_audio_with_an_offset_fails(
    quick: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged_generate(monkeypatch, lambda samples: samples - np.float32(0.2))
    assert cli.main([*quick, "--json"]) == 1
    assert verdicts(capsys.readouterr().out)["DC offset"] == "fail"


@pytest.fixture
def kept(
    quick: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[list[str], Path]:
    """A command with the baseline it has just made."""
    file = tmp_path / "baseline.json"
    command = [*quick, "--baseline", str(file)]
    assert cli.main(command) == 0
    assert capsys.readouterr().err.splitlines()[-1].endswith("to be compared with next time")
    return command, file


def test_a_baseline_is_made_once_and_then_compared_with(
    kept: tuple[list[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command, file = kept
    before = file.read_bytes()
    assert names_in(file.parent) == ["baseline.json"]
    assert cli.main([*command, "--json"]) == 0
    found = verdicts(capsys.readouterr().out)
    assert {name: found[name] for name in found if name.startswith("baseline")} == {
        "baseline: hashes": "pass",
        "baseline: counts": "pass",
        "baseline: figures": "pass",
    }
    assert file.read_bytes() == before


def test_a_changed_hash_fails_until_the_baseline_is_updated(
    kept: tuple[list[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command, file = kept
    content = json.loads(file.read_text())
    good = json.dumps(content["utterances"])
    content["utterances"][0]["sha256"] = 64 * "0"
    file.write_text(json.dumps(content))
    assert cli.main(command) == 1
    assert "the audio of text 1 is another" in capsys.readouterr().out
    assert cli.main([*command, "--update"]) == 0
    assert json.dumps(json.loads(file.read_text())["utterances"]) == good


def test_a_baseline_of_other_inputs_or_a_damaged_one_is_refused_before_any_work(
    kept: tuple[list[str], Path],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    command, file = kept
    monkeypatch.setattr(nightingale.TTS, "generate", None)
    assert cli.main([*command, "--seed", "1"]) == 1
    errors = capsys.readouterr().err
    assert "was made with settings" in errors
    assert "or --update" in errors
    content = json.loads(file.read_text())
    utterance = content["utterances"][0]
    for damaged in (
        "",
        "{",
        "[]",
        file.read_text()[:-40],
        json.dumps(content | {"format": 99}),
        json.dumps(content | {"utterances": []}),
        json.dumps(content | {"utterances": [utterance | {"tokens": "many"}]}),
        json.dumps(content | {"figures": {"level: rms_dbfs": "loud"}}),
    ):
        file.write_text(damaged)
        assert cli.main(command) == 1
        message = capsys.readouterr().err
        assert len(message.splitlines()) == 1
        assert message.startswith(f"nightingale: {file} is not a baseline: ")
        assert "--update writes it anew" in message
        assert file.read_text() == damaged


SNAPSHOT = {
    "context": {"processor": "this", "t3": "float32"},
    "utterances": [{"sha256": "aa", "tokens_sha256": "bb", "tokens": 100, "samples": 96000}],
    "figures": {"level: rms_dbfs": -24.0, "stream: log-mel: lowest_correlation": 0.99},
}


def compared(**changed: Any) -> dict[str, Any]:
    found = {result.name: result for result in baseline.compare(SNAPSHOT, SNAPSHOT | changed)}
    return {name.removeprefix("baseline: "): result for name, result in found.items()}


def test_counts_are_exact_in_the_same_place_and_near_elsewhere() -> None:
    utterances = [SNAPSHOT["utterances"][0] | {"sha256": "cc", "tokens": 101, "samples": 96960}]
    here = compared(utterances=utterances)
    assert here["hashes"].passed is False
    assert here["counts"].passed is False
    assert here["counts"].notes[0] == "text 1 had 100 tokens, has 101"
    elsewhere = {"processor": "another", "t3": "float32"}
    there = compared(utterances=utterances, context=elsewhere)
    assert there["hashes"].passed is None
    assert "processor was this, is another" in there["hashes"].figure
    assert there["counts"].passed
    far = [utterances[0] | {"tokens": 140}]
    assert compared(utterances=far, context=elsewhere)["counts"].passed is False


def test_figures_have_tolerances_and_getting_better_is_no_regression() -> None:
    def figures(level: float, correlation: float) -> Any:
        named = {"level: rms_dbfs": level, "stream: log-mel: lowest_correlation": correlation}
        return compared(figures=named)["figures"]

    assert figures(-24.5, 0.988).passed
    assert figures(-26.0, 0.99).passed is False
    assert figures(-24.0, 0.98).passed is False
    better = figures(-24.0, 1.0)
    assert better.passed
    assert "which is better" in better.notes[0]
    gone = compared(figures={"level: rms_dbfs": -24.0})["figures"]
    assert gone.passed is False
    assert gone.values["gone"] == ["stream: log-mel: lowest_correlation"]


@pytest.mark.parametrize(
    ("options", "phrase"),
    [
        (["--runs", "1"], "--runs must be 2 or more, not 1"),
        (["--update"], "--update needs --baseline FILE"),
        (["-o", "page.html"], "-o names the page of --ab"),
        (["--plot", "picture.doc"], "picture.doc must end in one of .png, .svg, .pdf"),
        (["--ab", "a", "b", "--json"], "--ab only writes a page"),
        (["--language", "xx"], "there is no text of our own in 'xx'"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    model: list[str], capsys: pytest.CaptureFixture[str], options: list[str], phrase: str
) -> None:
    assert cli.main(["validate", *model, *options]) == 1
    assert capsys.readouterr().err.startswith(f"nightingale: {phrase}")


def test_drawing_without_matplotlib_says_what_to_install(
    quick: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main([*quick, "--plot", str(tmp_path / "p.png")]) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("nightingale: drawing needs the package matplotlib")
    assert errors.endswith('pip install "nightingale-tts[plot]"\n')
    assert names_in(tmp_path) == []


def test_a_picture_is_drawn_of_the_first_sentence(tts: nightingale.TTS, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    text = "Hello, it costs $5 or $6. And more follows here."
    options = nightingale.SpeechOptions(max_tokens=12, steps=2)
    plot.draw(tts, text, options, tmp_path / "p.png")
    assert names_in(tmp_path) == ["p.png"]
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "p.png").stat().st_size > 20000


def test_importing_the_command_line_loads_none_of_it() -> None:
    from .test_package import output_of

    program = "import sys, argparse, nightingale.cli.validate as v; p = argparse.ArgumentParser(); "
    program += "v.add_commands(p.add_subparsers()); print(*sys.modules)"
    loaded = output_of(program).split()
    assert "nightingale.cli.validate" in loaded
    assert not {name for name in loaded if name.startswith("nightingale.validate.")}
