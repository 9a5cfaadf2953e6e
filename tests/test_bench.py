"""bench/: what is counted is what the models have, and the projection is the page that is kept."""

from __future__ import annotations

import argparse
import json
import sys
from math import inf, prod
from pathlib import Path

import numpy as np
import pytest

import nightingale
from bench import (
    apple_chips,
    draft_equality,
    h200,
    harness,
    kokoro,
    kv_cache,
    op_counts,
    projection,
    quality,
    speak,
    speculation,
)
from bench.roofline import PAGE, Target, page
from bench.t3 import Speech, decode_by_turns, print_turns
from tools.synthetic import (
    S3GEN_SIZES,
    SPEECH_VOCABULARY,
    T3_SIZES,
    Tensors,
    s3gen_weights,
    t3_weights,
    write_checkpoint,
)

pytestmark = pytest.mark.slow

FLOAT32 = 4  # bytes


def elements(tensors: Tensors, *begins: str) -> int:
    """Of tensors so named; a weight-norm pair counts as the tensor it stands for."""
    return sum(
        prod(weights.shape)
        for name, weights in tensors.items()
        if name.startswith(begins) and not name.endswith("original0")
    )


@pytest.mark.parametrize("size", ["small", "full"])
def test_every_weight_of_t3_is_counted_once(size: str) -> None:
    tensors = t3_weights(T3_SIZES[size], text_vocabulary=2454)
    works = op_counts.t3_step(T3_SIZES[size], 100, 2, SPEECH_VOCABULARY)
    used = elements(tensors, "tfmr.layers.", "tfmr.norm.", "speech_head.")
    assert op_counts.total(works, "weights") == used


@pytest.mark.parametrize("size", ["small", "full"])
def test_every_weight_of_s3gen_is_counted_once(size: str) -> None:
    sizes, tensors = S3GEN_SIZES[size], s3gen_weights(S3GEN_SIZES[size])
    encoder = op_counts.encoder(sizes, 40)
    assert op_counts.total(encoder, "weights") == elements(
        tensors, "flow.encoder.", "flow.encoder_proj."
    )
    step = [*op_counts.estimator(sizes, 60), *op_counts.flow_times(sizes, 10)]
    assert op_counts.total(step, "weights") == elements(tensors, "flow.decoder.")
    vocoder = op_counts.vocoder(sizes, 60)
    assert op_counts.total(vocoder, "weights") == elements(tensors, "mel2wav.")


def test_a_loaded_model_reports_the_same(tts: nightingale.TTS) -> None:
    size = T3_SIZES["small"]
    works = op_counts.t3_step(size, 100, 2, SPEECH_VOCABULARY)
    norms = (2 * size.layers + 1) * size.hidden
    assert tts.info["t3"]["step_bytes"] == FLOAT32 * (op_counts.total(works, "weights") - norms)
    tensors = s3gen_weights(S3GEN_SIZES["small"])
    assert tts.info["flow"]["weight_bytes"] == FLOAT32 * elements(tensors, "flow.")
    assert tts.info["vocoder"]["weight_bytes"] == FLOAT32 * elements(tensors, "mel2wav.")


def test_precisions_decode_by_turns(
    quick_checkpoint: Path, device: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["float32", "float16"]
    tts = nightingale.load(quick_checkpoint, device=device)
    begin = -Speech(tts).token_at(0)  # of speech
    args = argparse.Namespace(
        precisions=names, device=device, context=(begin + 2, begin + 6), turns=3
    )
    seconds = decode_by_turns(quick_checkpoint, args)
    assert list(seconds) == names
    assert all(len(taken) == 3 and min(taken) > 0 for taken in seconds.values())
    print_turns({"float32": [0.002, 0.004, 0.003], "int8": [0.0015, 0.0045, 0.002]})
    *_, exact, quantized = capsys.readouterr().out.splitlines()
    assert exact.split() == ["nightingale", "float32", "3.000", "(2.000-4.000)", "+0.000"]
    assert quantized.split() == ["nightingale", "int8", "2.000", "(1.500-4.500)", "-0.500"]


def test_a_token_takes_the_launches_that_are_counted(tts: nightingale.TTS, device: str) -> None:
    if device != "gpu":
        pytest.skip("kernels are launched on a GPU: run with --device gpu")
    works = op_counts.t3_step(T3_SIZES["small"], 120, 2, SPEECH_VOCABULARY)
    assert Speech(tts).decode(10, 30).launches == op_counts.total(works, "launches")


def test_the_flops_of_a_step_are_those_of_its_products() -> None:
    # By hand: 2 rows of 511.7 M weights, and attention over 375 positions in 30 layers.
    works = op_counts.t3_step(T3_SIZES["full"], 375, 2, SPEECH_VOCABULARY)
    by_hand = 2 * 2 * (30 * (4 * 1024**2 + 3 * 1024 * 4096) + 8194 * 1024)
    by_hand += 2 * 30 * 4 * 375 * 1024
    assert op_counts.total(works, "flops") == by_hand
    assert op_counts.total(works, "launches") == 153


def test_a_token_is_drawn_at_the_context_that_is_asked_for(tts: nightingale.TTS) -> None:
    speech = Speech(tts)
    first = speech.token_at(120)
    # Voice 34, text 60 with start and stop, the start of speech; then the tokens fed in.
    assert 34 + 60 + 2 + 1 + first == 120
    assert sum(1 for _ in speech.tokens(first)) == first


def test_a_bound_is_a_bound() -> None:
    for chip in (*apple_chips.MACS, *apple_chips.IPHONES):
        sides = (projection.LIKELY, projection.BOUND)
        likely, bound = (projection.sentence_s(chip, side, 2.0) for side in sides)
        assert 1.2 * bound < likely < 4 * bound, chip.name
    m1 = apple_chips.MACS[0]
    weights = op_counts.t3_step(projection.T3, 375, 2, SPEECH_VOCABULARY)
    moved = 2.0 * op_counts.total(weights, "weights") + op_counts.total(weights, "values")
    token = projection.tokens_s(m1, projection.BOUND, 2.0, 375, 1)
    assert token == pytest.approx(moved / (1e9 * m1.bandwidth))


def test_the_page_is_what_the_projection_gives() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m bench.roofline --write"


def test_the_page_says_first_that_nothing_was_measured() -> None:
    assert "Nothing on this page was measured on Apple hardware" in page().splitlines()[2]


def test_targets_are_marked_where_the_likely_figure_meets_them() -> None:
    more = Target(80, 100, most=True)
    assert more.shown(79.4, 120, 0) == "79 (120)"
    assert more.shown(80, 120, 0) == "**80** (120)"
    assert more.shown(100, 120, 0) == "***100*** (120)"
    assert Target(1.0).shown(0.5, 0.25, 2) == "**0.50** (0.25)"


def test_quoted_figures_are_compared_on_their_machine_only() -> None:
    assert h200.times(17.7, 0.00177, "NVIDIA H200") == "10.0x"
    assert h200.times(17.7, 0.00177, "Apple M4") == ""
    assert h200.utterance_ms(10) == pytest.approx(738)
    assert h200.utterance_ms(102) == pytest.approx(2318.4)


def test_a_spread_has_its_middle_and_its_ends() -> None:
    spread = harness.summarize([float(value) for value in range(1, 21)])
    assert spread == {"median": 10.5, "least": 1.0, "most": 20.0, "p90": pytest.approx(18.1)}
    assert harness.format_ms({"median": 0.0125, "least": 0.01, "most": 0.02}) == "12.5 (10.0-20.0)"


def test_caches_are_compared(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--folder", str(checkpoint), "--rounds", "1", "--context", "110", "120"]
    monkeypatch.setattr(sys, "argv", ["bench.kv_cache", *words, "--agreement", "6"])
    kv_cache.main()
    table = capsys.readouterr().out
    for mode in kv_cache.modes("float16", "cpu"):
        assert mode.name in table


@pytest.mark.nightly
def test_what_bits_change_is_measured(
    quick_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    some = ("float32", "cache in 8 bits", "8 bits, cache too")
    monkeypatch.setattr(quality, "WAYS", [way for way in quality.WAYS if way.name in some])
    judged: list[str] = []

    def judge(clips: dict, folder: Path, kept: Path) -> dict:
        judged.extend(clips)
        assert all(wav.stat().st_size > 44 for wav, _, _ in clips.values())
        text = {name: said for name, (_, _, said) in clips.items()}
        heard = {name: said.removesuffix("two") for name, said in text.items()}
        return {
            name: {"text": text[name], "whisper": heard[name], "mos": 4.5, "moonshine": text[name]}
            for name in clips
        }

    monkeypatch.setattr(quality, "judge", judge)
    text, found = tmp_path / "text", tmp_path / "found.json"
    text.write_text("One.\nOne two\n", "utf-8")
    words = ["--model", quick_checkpoint, "--text", text, "--sentences", 2, "--json", found]
    words += ["--beside", quick_checkpoint, "--judge", tmp_path, "--clips", tmp_path / "clips"]
    monkeypatch.setattr(sys, "argv", ["bench.quality", *map(str, words)])
    quality.main()
    results = json.loads(found.read_text("utf-8"))
    for name in ("float32", quick_checkpoint.name):  # the same model twice
        assert results[name]["agreement"] == 1
        assert results[name]["mel"] == pytest.approx(1)
        assert results[name]["snr"] == inf
    assert 0.99 < results["8 bits, cache too"]["mel"] < 1
    assert results["cache in 8 bits"]["snr"] == inf
    assert len(judged) == 4 * 2
    for result in (results[name] for name in (*some, quick_checkpoint.name)):
        assert result["whisper"] == pytest.approx(100 / 3, abs=0.01)
        assert (result["moonshine"], result["mos"]) == (0, 4.5)
    table = capsys.readouterr().out
    assert all(name in table for name in some)


def test_drafts_are_compared(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", str(checkpoint), "--tokens", "10", "--rounds", "1"]
    monkeypatch.setattr(sys, "argv", ["bench.speculation", *words])
    assert speculation.main() == 0
    table = capsys.readouterr().out
    assert "plain" in table
    assert "layers, as many as pay" in table
    assert "8 together" in table


def test_a_model_is_compared_on_sentences(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = tmp_path / "sentences.txt"
    text.write_text("The first of two.\nThe second one of them.\n")
    words = ["--model", str(checkpoint), "--text", str(text), "--sentences", "2", "--tokens", "8"]
    words += ["--draft", str(checkpoint), "--rounds", "1", "--precision", "float32"]
    monkeypatch.setattr(sys, "argv", ["bench.speculation", *words])
    assert speculation.main() == 0
    rows = {line[:32].strip(): line[32:].split() for line in capsys.readouterr().out.splitlines()}
    # The draft is the model itself: seven tokens after the first of either text.
    assert rows["model, 1 proposed"][2:] == ["6", "6"]
    assert "layers, as many as pay" not in rows


def equality(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sentences: int
) -> int:
    text = tmp_path / "sentences.txt"
    text.write_text("The first of two.\n\nThe second one of them.\n")
    words = ["--model", str(checkpoint), "--equality", "--text", str(text), "--seeds", "2"]
    words += ["--sentences", str(sentences), "--tokens", "12", "--draft", str(checkpoint)]
    monkeypatch.setattr(sys, "argv", ["bench.speculation", *words])
    return speculation.main()


def test_every_draft_is_compared_with_plain_decoding(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert equality(checkpoint, tmp_path, monkeypatch, 2) == 0
    *rows, total = capsys.readouterr().out.splitlines()[1:]
    # Two sentences with two seeds; three drafts, two precisions, two temperatures.
    assert total == "48 of 48 token sequences are those of plain decoding"
    assert len(rows) == 12
    for row in rows:
        precision, draft, _, equal, spoken, proposed, accepted, *_ = row.split()
        assert (equal, spoken) == ("4", "4")
        if (precision, draft) == ("float32", str(checkpoint)):
            assert 0.5 * int(proposed) < int(accepted) <= int(proposed)


def test_one_other_token_is_told(
    checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plain_speak = draft_equality.speak

    def speak(
        tts: nightingale.TTS, utterance: draft_equality.Utterance
    ) -> tuple[list[int], dict[str, int]]:
        tokens, brought = plain_speak(tts, utterance)
        wrong = tts.info.get("draft", {}).get("draft") == "layers" and utterance.seed == 1
        return [*tokens[:7], tokens[7] + wrong, *tokens[8:]], brought

    monkeypatch.setattr(draft_equality, "speak", speak)
    assert equality(checkpoint, tmp_path, monkeypatch, 1) == 1
    out = capsys.readouterr().out
    assert "20 of 24 token sequences" in out
    assert "float32, layers, temperature 0.8: seed 1 differs from token 7 on: The first" in out


def test_too_few_sentences_are_told(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match="has 2 sentences; 3 were asked for"):
        equality(checkpoint, tmp_path, monkeypatch, 3)


def test_the_bench_streams_and_speaks_what_it_is_asked_for(tts: nightingale.TTS) -> None:
    streamed = speak.chunks(tts, 30, 1)
    (whole,) = speak.chunks(tts, 30, 1, whole=True)
    assert len(streamed) > 1
    assert sum(len(chunk.samples) for chunk in streamed) == len(whole.samples)
    assert whole.timings.keys() >= {"text", "total", "ttfa", *speak.STAGES}


def test_the_bench_measures_turbo(tmp_path: Path, device: str) -> None:
    write_checkpoint(tmp_path / "turbo", model="turbo")
    assert harness.backbone_of(tmp_path / "turbo") == "gpt2"
    tts = harness.load(tmp_path / "turbo", "int8", device, beside="bfloat16")
    assert (tts.info["t3"]["bits"], tts.info["flow"]["dtype"]) == (8, "bfloat16")
    (whole,) = speak.chunks(tts, 12, None, whole=True)
    # Three tokens of silence at the end; a token that is no sound is left out.
    assert 480 * 2 * 12 < len(whole.samples) <= 480 * 2 * (12 + 3)
    speech = Speech(tts)
    # The speaker, 375 tokens of prompt, 60 of text, the start of speech.
    assert speech.token_at(376 + 60 + 1) == 1
    with pytest.raises(ValueError, match="take 436 positions"):
        speech.warmed((250, 500))


def test_a_whole_utterance_is_compared_with_the_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def measured(seconds: float) -> dict:
        return {
            "first_s": seconds,
            "total_s": seconds,
            "rtf": seconds / 12,
            "stages": dict.fromkeys(speak.STAGES, seconds / 3),
        }

    results = {"int8": [measured(6.0), measured(8.0)], "reference": [measured(24.0)] * 2}
    speak.print_cpu_table(results, argparse.Namespace(tokens=300), Path())
    ours, theirs = (line.split() for line in capsys.readouterr().out.splitlines()[1:])
    assert ours == ["nightingale", "int8", "7.00", "7.0", "0.58", *["2.3"] * 3, "3.5x", "3.5x"]
    assert theirs == ["chatterbox-tts", "float32", "24.00", "24.0", "2.00", *["8.0"] * 3]


def test_options_reach_the_process_that_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = []

    def started(command: list[str], **_: object) -> argparse.Namespace:
        commands.append(command)
        return argparse.Namespace(stdout="{}")

    monkeypatch.setattr(harness.subprocess, "run", started)
    args = argparse.Namespace(
        precisions=["float32"], device="cpu", rounds=1, reference=None, json=None
    )
    options = {"steps": None, "whole": True, "quiet": False, "context": (1, 2), "tokens": 0}
    harness.run_rounds("bench.speak", tmp_path, args, options, dict)
    given = ["--whole", "--context", "1", "2", "--tokens", "0", "--measure", "float32"]
    assert commands[0][-len(given) :] == given
    assert "--steps" not in commands[0]


def test_kokoro_takes_turns_and_has_the_style_of_its_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, said = [0.0], []
    monkeypatch.setattr(kokoro.time, "perf_counter", lambda: now[0])

    def speaker(name: str, *times: float) -> kokoro.Speak:
        left = iter(times)

        def speak() -> float:
            said.append(name)
            now[0] += next(left)
            return 2.0

        return speak

    speakers = {"one": speaker("one", 9, 1, 3, 2), "other": speaker("other", 9, 4, 4, 8)}
    assert kokoro.real_time_factors(speakers, 3) == {"one": 1.0, "other": 2.0}
    assert said == ["one", "other"] * 4
    voice = np.arange(kokoro.STYLES * kokoro.STYLE, dtype=np.float32)
    assert kokoro.style_of(voice, 3)[0, 0] == 2 * kokoro.STYLE
    assert kokoro.style_of(voice, 600)[0, 0] == 509 * kokoro.STYLE
    assert kokoro.phoneme_ids("a?b", {"a": 7, "b": 9}) == [7, 9]
