"""Each check of `validate` passes good sound and fails what it is there to find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nightingale
from nightingale.audio import SAMPLE_RATE, Audio
from nightingale.validate import languages, precision, repeatability, seams, spectrum
from nightingale.validate.log_mel import correlation, hertz_to_band, log_mel
from nightingale.validate.precision import Reading
from nightingale.validate.report import Result, all_passed, as_json, skipped, table
from nightingale.validate.seams import StreamRun

RNG = np.random.default_rng(7)
TOKENS = np.arange(50, dtype=np.int32)


def voiced(seconds: float = 2.0) -> np.ndarray:
    """Harmonics of 120 Hz, swelling four times a second, with a little breath."""
    time = np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE
    tones = sum(np.sin(2 * np.pi * 120 * k * time + k) / k for k in range(1, 40))
    breath = 0.01 * RNG.standard_normal(len(time))
    swell = 0.55 - 0.45 * np.cos(2 * np.pi * 4 * time)
    return (0.1 * swell * (tones + breath)).astype(np.float32)


GOOD = voiced()
NOISE = (0.08 * RNG.standard_normal(len(GOOD))).astype(np.float32)


@pytest.fixture(params=["voiced", "noise"])
def good(request: pytest.FixtureRequest) -> np.ndarray:
    """Like speech, and like what the synthetic checkpoints say: good for every check."""
    return {"voiced": GOOD, "noise": NOISE}[request.param].copy()


@pytest.fixture
def run(good: np.ndarray) -> StreamRun:
    return StreamRun("test", good, TOKENS, [9600, 24000, 40003], Audio(good.copy(), TOKENS))


LEVEL_CHECKS = (
    spectrum.clipping,
    spectrum.dc_offset,
    spectrum.level,
    spectrum.silence,
    spectrum.bands,
)


def test_good_sound_passes_every_check_of_level_and_spectrum(good: np.ndarray) -> None:
    for check in LEVEL_CHECKS:
        assert check([good, good[:20000]]).passed, check.__name__


def test_clipped_sound_fails(good: np.ndarray) -> None:
    loud = np.clip(30 * good, -0.99, 0.99)
    result = spectrum.clipping([good, loud])
    assert result.passed is False
    assert result.values["near_limit_share"] > 0.1
    assert result.values["beyond_1"] == 0


@pytest.mark.parametrize(("value", "key"), [(1.01, "beyond_1"), (np.nan, "not_finite")])
def test_one_sample_beyond_1_or_not_a_number_fails(
    good: np.ndarray, value: float, key: str
) -> None:
    good[700] = value
    result = spectrum.clipping([good])
    assert result.passed is False
    assert result.values[key] == 1
    assert all(np.isfinite(next(iter(check([good]).values.values()))) for check in LEVEL_CHECKS)


def test_an_offset_fails_whichever_clip_has_it(good: np.ndarray) -> None:
    result = spectrum.dc_offset([good, good - 0.2])
    assert result.passed is False
    assert result.values["dc"] == pytest.approx(-0.2, abs=0.005)


def test_level_is_in_decibels_of_full_scale_and_has_both_bounds(good: np.ndarray) -> None:
    sine = np.sin(2 * np.pi * 440 * np.arange(SAMPLE_RATE) / SAMPLE_RATE)
    assert spectrum.level([0.1 * sine]).values["rms_dbfs"] == pytest.approx(-23.01, abs=0.01)
    assert spectrum.level([good / 1000]).passed is False
    assert spectrum.level([sine]).passed is False
    assert spectrum.level([np.zeros(SAMPLE_RATE)]).passed is False


def test_a_clip_that_is_mostly_silent_fails(good: np.ndarray) -> None:
    padded = np.concatenate([good, np.zeros(3 * len(good), np.float32)])
    result = spectrum.silence([padded])
    assert result.passed is False
    assert result.values["silent_share"] == pytest.approx(0.75, abs=0.05)


def test_energy_is_split_by_band_and_a_hum_fails(good: np.ndarray) -> None:
    time = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    tones = [np.sin(2 * np.pi * hertz * time) for hertz in (100, 1000, 5000, 10000)]
    shares = spectrum.bands([0.1 * sum(tones)]).values
    assert list(shares) == ["0-300 Hz", "300-3400 Hz", "3400-8000 Hz", "8000-12000 Hz"]
    assert list(shares.values()) == pytest.approx([0.25] * 4, abs=0.01)
    assert spectrum.bands([0.1 * tones[0]]).passed is False
    assert spectrum.bands([np.zeros(100)]).passed is False


def test_a_stream_that_is_the_whole_passes(run: StreamRun) -> None:
    results = [check([run]) for check in (seams.same_tokens, seams.same_length)]
    results += [seams.jumps([run]), seams.kinks([run]), *seams.likeness([run])]
    assert [result.verdict for result in results] == ["pass"] * 6
    assert results[-1].values["lowest_correlation"] == 1


def test_other_tokens_fail_and_are_counted(run: StreamRun) -> None:
    tokens = TOKENS.copy()
    tokens[30] = 6000
    result = seams.same_tokens([run, replace(run, tokens=tokens)])
    assert result.passed is False
    assert result.figure == "1 of 2 streams"
    assert "the first 30 are the same" in result.notes[0]


def test_a_shortened_stream_fails(run: StreamRun) -> None:
    result = seams.same_length([run, replace(run, samples=run.samples[:-480])])
    assert result.passed is False
    assert result.values["largest_difference"] == -480
    assert seams.same_tokens([replace(run, tokens=TOKENS[:-1])]).passed is False


def test_a_jump_at_a_seam_fails(run: StreamRun) -> None:
    samples = run.samples.copy()
    samples[24000:] += 0.8
    result = seams.jumps([replace(run, samples=samples)])
    assert result.passed is False
    assert result.values["highest_ratio"] > 1


def test_a_click_in_a_soft_place_fails_though_louder_steps_are_elsewhere() -> None:
    samples = GOOD.copy()
    seam = 2 * SAMPLE_RATE // 4  # where the voice swells from silence
    samples[seam] += 0.03
    run = StreamRun("test", samples, TOKENS, [seam], Audio(GOOD, TOKENS))
    assert seams.jumps([run]).passed
    result = seams.kinks([run])
    assert result.passed is False
    assert result.values["highest_ratio"] > seams.LARGEST_KINK


def test_a_click_that_is_not_at_a_seam_is_not_blamed_on_one(run: StreamRun) -> None:
    samples = run.samples.copy()
    samples[12345] += 0.9
    assert seams.jumps([replace(run, samples=samples)]).passed
    assert seams.kinks([replace(run, samples=samples)]).passed


def test_a_stream_that_says_something_else_fails(run: StreamRun) -> None:
    tremor = 0.52 + 0.48 * np.sin(2 * np.pi * 3 * np.arange(len(run.samples)) / SAMPLE_RATE)
    overall, near = seams.likeness([replace(run, samples=tremor * run.samples)])
    assert (overall.passed, near.passed) == (False, False)


def test_another_level_fails_though_it_correlates() -> None:
    run = StreamRun("test", 3 * NOISE, TOKENS, [24000], Audio(NOISE, TOKENS))
    overall, _ = seams.likeness([run])
    assert overall.passed is False
    assert overall.values["lowest_correlation"] == pytest.approx(1)
    assert overall.values["highest_difference_db"] == pytest.approx(9.54, abs=0.01)


def test_damage_about_one_seam_is_found_there(run: StreamRun) -> None:
    samples = run.samples.copy()
    samples[24000 - 1500 : 24000 + 1500] *= 0.3
    _, near = seams.likeness([replace(run, samples=samples)])
    assert near.passed is False
    assert near.values["highest_difference_db"] > 4
    assert near.values["elsewhere"]["highest_difference_db"] < near.values["highest_difference_db"]


@pytest.mark.parametrize(
    ("at_seams", "verdict"),
    [
        ({40000: 0.55}, "pass"),
        ({40000: 0.4}, "FAIL"),  # more than anything elsewhere
        ({40000: 0.55, 80000: 0.55}, "FAIL"),  # at most of them, in few places elsewhere
    ],
)
def test_seams_are_held_to_what_is_elsewhere_if_the_stream_as_a_whole_is_good(
    at_seams: dict[int, float], verdict: str
) -> None:
    whole = np.tile(GOOD, 4)
    samples = whole.copy()
    for place, level in (at_seams | {60000: 0.5, 100000: 0.5}).items():
        samples[place - 1500 : place + 1500] *= level
    run = StreamRun("test", samples, TOKENS, [40000, 80000, 120000], Audio(whole, TOKENS))
    overall, near = seams.likeness([run])
    assert (overall.verdict, near.verdict) == ("pass", verdict)
    assert near.values["highest_difference_db"] > seams.SMALL_DIFFERENCE
    assert ("as near as elsewhere" in "".join(near.notes)) == (verdict == "pass")
    # Where the whole is no good, no seam is excused by it.
    samples[130000:] *= 0.1
    assert [result.verdict for result in seams.likeness([run])] == ["FAIL", "FAIL"]


def test_noise_that_differs_little_passes_and_the_report_says_why() -> None:
    other = NOISE + (0.016 * RNG.standard_normal(len(NOISE))).astype(np.float32)
    run = StreamRun("test", other, TOKENS, [24000], Audio(NOISE, TOKENS))
    overall, _ = seams.likeness([run])
    assert overall.passed
    assert overall.values["lowest_correlation"] < seams.LEAST_CORRELATION
    assert "below 0.98" in overall.notes[0]


def test_one_chunk_alone_has_no_seam_to_check(run: StreamRun) -> None:
    alone = replace(run, seams=[])
    assert seams.jumps([alone]).verdict == "skipped"
    assert seams.kinks([alone]).verdict == "skipped"
    overall, near = seams.likeness([alone])
    assert (overall.passed, near.passed) == (True, None)


def test_log_mel_has_a_frame_every_20_ms_and_hears_a_tone_in_its_band() -> None:
    time = np.arange(SAMPLE_RATE) / SAMPLE_RATE
    for hertz in (200.0, 1000.0, 4000.0):
        mel = log_mel(np.sin(2 * np.pi * hertz * time))
        assert mel.shape == (80, 50)
        assert abs(mel[:, 25].argmax() - hertz_to_band(hertz)) <= 1
    assert log_mel(np.zeros(10)).shape == (80, 1)


def test_correlation_of_values_that_do_not_vary_is_whether_they_are_equal() -> None:
    flat = np.ones((2, 3))
    assert correlation(flat, flat) == 1
    assert correlation(flat, 2 * flat) == 0
    ramp = np.arange(6.0)
    assert correlation(ramp, 5 - 3 * ramp) == pytest.approx(-1)


def test_hashes_tell_runs_threads_and_seeds_apart() -> None:
    one, other = repeatability.sha256(GOOD), repeatability.sha256(GOOD + np.float32(1e-6))
    assert one != other
    assert repeatability.same_every_run([one, one, one]).passed
    assert repeatability.same_every_run([one, one, other]).passed is False
    assert repeatability.same_with_threads(one, {1: one, 2: one}).passed
    threads = repeatability.same_with_threads(one, {1: one, 2: other})
    assert threads.passed is False
    assert threads.notes == (f"{other[:12]} with 2 threads",)
    assert repeatability.other_with_another_seed(one, other).passed
    assert repeatability.other_with_another_seed(one, one).passed is False


def reading(dtype: str) -> Reading:
    logits = np.sin(np.arange(60 * 40, dtype=np.float32)).reshape(60, 40)
    mel = np.cos(np.arange(80 * 100, dtype=np.float32)).reshape(80, 100)
    return Reading(dtype, TOKENS, logits, mel, np.zeros(48000, np.float32))


def test_precisions_that_agree_pass() -> None:
    base, other = reading("float32"), reading("bfloat16")
    for check in (precision.token_counts, precision.same_logits, precision.same_sound):
        assert check(base, [other]).passed


@pytest.mark.parametrize(
    ("check", "damage"),
    [
        (precision.token_counts, {"tokens": TOKENS[:30]}),
        (precision.same_logits, {"logits": -reading("").logits}),
        (precision.same_sound, {"mel": reading("").mel[:, ::-1]}),
        (precision.same_sound, {"samples": np.zeros(47520, np.float32)}),
    ],
)
def test_a_precision_that_differs_fails(check, damage: dict[str, np.ndarray]) -> None:
    base, other = reading("float32"), replace(reading("float16"), **damage)
    assert check(base, [reading("bfloat16"), other]).passed is False


def test_tokens_of_a_precision_may_differ_after_a_while_and_are_counted() -> None:
    other = replace(reading("float16"), tokens=np.r_[TOKENS[:20], TOKENS[20:45] + 1])
    result = precision.token_counts(reading("float32"), [other])
    assert result.passed
    assert result.values["same_at_first"] == {"float16": 20}
    assert result.figure == "float32 50, float16 45"


def test_every_language_of_the_synthetic_model_tokenises(tts: nightingale.TTS) -> None:
    result = languages.tokenised(tts)
    assert result.passed
    values = result.values
    assert set(values["tokens"]) | set(values["skipped"]) == set(tts.languages)
    assert set(languages.SENTENCES) == set(tts.languages)
    assert set(values["skipped"]) <= {"zh", "ja"}


def test_a_missing_package_is_skipped_and_other_failures_are_not(
    tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenize = tts.tokenize

    def broken(text: str, language: str) -> np.ndarray:
        if language == "ja":
            raise nightingale.Error("Japanese needs a package") from ImportError("no package")
        if language == "fr":
            raise nightingale.Error("the table is damaged")
        tokens = tokenize("Hello.", "en")
        return np.r_[tokens, 1] if language == "de" else tokens

    monkeypatch.setattr(tts, "tokenize", broken)
    result = languages.tokenised(tts)
    assert result.passed is False
    assert result.values["skipped"] == {"ja": "Japanese needs a package"}
    assert set(result.values["failed"]) == {"fr", "de"}
    assert "de: 1 of" in "\n".join(result.notes)


def test_the_table_has_a_line_a_check_and_ends_with_the_counts() -> None:
    results = [
        Result("one", "1.0", "<= 2", True),
        Result("another", "9", "<= 2", False, notes=("see here",)),
        skipped("third", "no package"),
    ]
    lines = table(results).splitlines()
    assert lines[0].split() == ["check", "figure", "bound", "verdict"]
    assert lines[2].split() == ["one", "1.0", "<=", "2", "pass"]
    assert lines[3].split()[-1] == "FAIL"
    assert lines[4].split()[-1] == "skipped"
    assert lines[-2:] == ["another: see here", "1 passed, 1 failed, 1 skipped"]
    assert not all_passed(results)
    assert all_passed([results[0], results[2]])
    assert [check["verdict"] for check in as_json(results)["checks"]] == ["pass", "fail", "skipped"]
