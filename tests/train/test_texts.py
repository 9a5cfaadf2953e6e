from __future__ import annotations

import hashlib
import json
import lzma
import random
from collections import Counter
from pathlib import Path

import pytest

from train import short_texts, texts
from train.evaluation_sentences import (
    assert_not_trained_on,
    contains_forbidden,
    evaluation_sentences,
    forbidden_texts,
    normalized,
)
from train.short_texts import SHORT, sentences
from train.voices import HELD_OUT_VOICES, SHIPPED_VOICES, VOICES, blends, draw_voice, shares

HARVARD = ["Glue the sheet to the dark blue background.", "The birch canoe slid."]
ARCTIC = [f"Arctic sentence {word}." for word in ("one", "two", "three")] * 100
LINES = {
    language: [
        f" {language} line {n}, ¿no?" if n % 7 == 0 else f"{language} line {n}" for n in range(400)
    ]
    for language in ("en", "es", "fr", "it", "pt")
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    (folder / "harvard_en_half.txt").write_text("\n".join(HARVARD) + "\n", encoding="utf-8")
    (folder / "cmu_arctic_prompts.txt").write_text("\n".join(ARCTIC) + "\n", encoding="utf-8")
    for language, lines in LINES.items():
        with lzma.open(folder / f"cv_{language}.txt.xz", "wt", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="module")
def forbidden(data: Path) -> set[str]:
    return forbidden_texts(data)


@pytest.fixture
def sentence_rows() -> list[dict]:
    accents = ["en-us", "en-us", "en-gb", "es", "fr", "it", "pt"]
    return [
        {
            "lang": accents[n % 7],
            "text": f"This, my dear friend, is the sentence {name(n)}.",
            "phonemes": "a" * 30,
        }
        for n in range(2100)
    ]


def name(number: int) -> str:
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


@pytest.fixture(autouse=True)
def spelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Phonemes are letters and numbers are figures here: the packages are not tested."""
    monkeypatch.setattr(texts, "Phonemizer", lambda: lambda text, accent: text.lower())
    monkeypatch.setattr(short_texts, "in_words", lambda figure, language: f"number {figure}")


def test_lines_with_the_smallest_sha_256_are_evaluated(data: Path) -> None:
    found = evaluation_sentences(data)
    assert found["en"] == HARVARD + ARCTIC[:200]
    ranked = sorted(LINES["it"], key=lambda line: hashlib.sha256(line.encode()).hexdigest())
    assert found["it"] == [line.strip() for line in ranked[:100]]


def test_words_are_compared_without_case_accents_and_marks() -> None:
    assert normalized(" «Où vas-tu\u00a0?» dit-il… ") == "ou vas tu dit il"
    assert normalized("\ufb01gure") == "figure"


def test_evaluated_texts_are_recognized(forbidden: set[str]) -> None:
    assert contains_forbidden("glue the sheet to the DARK blue background", forbidden)
    assert contains_forbidden("Hello there! The birch canoe slid. Good.", forbidden)
    assert contains_forbidden("Arctic, sentence: three!", forbidden)
    assert not contains_forbidden("The birch canoe slid on.", forbidden)
    assert_not_trained_on(["The birch canoe slid on."], forbidden)
    with pytest.raises(AssertionError, match="is evaluated: it must not be trained on"):
        assert_not_trained_on(["Fine.", "“The Birch canoe slid”"], forbidden)


def test_both_selections_of_a_line_with_white_space_are_excluded(forbidden: set[str]) -> None:
    def smallest(lines: list[str]) -> list[str]:
        return sorted(lines, key=lambda line: hashlib.sha256(line.encode()).digest())[:100]

    for lines in (LINES["es"], [line.strip() for line in LINES["es"]]):
        assert all(contains_forbidden(line, forbidden) for line in smallest(lines))


def test_lines_become_sentences(data: Path, forbidden: set[str], tmp_path: Path) -> None:
    assert texts.clean_line("¡ esta noche han  matado") == "¡esta noche han matado."
    assert texts.clean_line("ya lo dice el adagio:") == "Ya lo dice el adagio."
    assert texts.clean_line("« Oui. »") == "« Oui. »."
    assert texts.clean_line(" - ") == ""
    texts.write_lines(data, tmp_path)
    kept = (tmp_path / "cv_pt.txt").read_text("utf-8").splitlines()
    assert 195 <= len(kept) <= 300
    assert not any(contains_forbidden(line, forbidden) for line in kept)


def test_a_mix_has_short_and_long_texts_and_leaves_out_what_is_evaluated(
    forbidden: set[str], sentence_rows: list[dict]
) -> None:
    evaluated = [
        {"lang": "en-us", "text": text, "phonemes": "b" * 20} for text in (*HARVARD, ARCTIC[0])
    ]
    rows = texts.build_rows(sentence_rows + evaluated, forbidden, seed=3)
    assert not any(contains_forbidden(row["text"], forbidden) for row in rows)
    assert all(sentence["text"][5:20] in _all(rows) for sentence in sentence_rows[:20])
    words = [len(row["text"].split()) for row in rows]
    assert 0.08 < sum(count <= 3 for count in words) / len(rows) < 0.2
    assert 0.05 < sum(count > 10 for count in words) / len(rows) < 0.3
    assert max(len(row["text"]) for row in rows) <= texts.PARAGRAPH_LETTERS + 10
    assert len({row["id"] for row in rows}) == len(rows)
    outputs = {text for short in SHORT.values() for text in sentences(short)}
    assert len(outputs & {row["text"] for row in rows}) > 40


def _all(rows: list[dict]) -> str:
    return "\n".join(row["text"] for row in rows)


def test_a_mix_may_have_less_english_and_more_of_the_others(
    data: Path,
    forbidden: set[str],
    sentence_rows: list[dict],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(texts, "LINE_LETTERS", (8, 140))
    given = tmp_path / "given.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in sentence_rows), encoding="utf-8")

    def languages(**options: float) -> Counter:
        texts.write_mix(data, given, tmp_path / "mix.jsonl", 1, **options)
        with (tmp_path / "mix.jsonl").open(encoding="utf-8") as lines:
            rows = [json.loads(line) for line in lines]
        assert not any(contains_forbidden(row["text"], forbidden) for row in rows)
        return Counter(row["lang"] for row in rows)

    plain, changed = languages(), languages(english_share=0.5, extra_lines=150)
    for accent in ("en-us", "en-gb"):
        assert 0.4 < changed[accent] / plain[accent] < 0.65
    for language in ("es", "fr", "it", "pt"):
        assert changed[language] > plain[language] + 80


def test_a_mix_is_the_same_for_the_same_seed(
    forbidden: set[str], sentence_rows: list[dict]
) -> None:
    def mix(seed: int) -> list[dict]:
        return texts.build_rows([dict(row) for row in sentence_rows], forbidden, seed)

    assert mix(1) == mix(1)
    assert mix(1) != mix(2)


def test_a_mix_is_spoken_at_several_speeds(forbidden: set[str], sentence_rows: list[dict]) -> None:
    for usual in (0.0, 0.3, 1.0):
        rows = texts.build_rows(sentence_rows, forbidden, seed=1, usual_speed=usual)
        speeds = Counter(row["speed"] for row in rows if row["voice"] not in HELD_OUT_VOICES)
        assert abs(speeds[1.0] / speeds.total() - usual) < 0.06
        assert set(speeds) - {1.0} == (set(texts.OTHER_SPEEDS) if usual < 1 else set())


def test_voices_held_out_say_a_little_and_are_in_no_blend(
    forbidden: set[str], sentence_rows: list[dict]
) -> None:
    assert len(HELD_OUT_VOICES) == 8
    rows = texts.build_rows(sentence_rows, forbidden, seed=1)
    counts = Counter(row["voice"] for row in rows)
    for voice, accent in HELD_OUT_VOICES.items():
        assert counts[voice] == texts.HELD_OUT_ROWS
        assert {row["lang"] for row in rows if row["voice"] == voice} == {accent}
    for accent, voices in VOICES.items():
        assert not set(voices) & set(HELD_OUT_VOICES)
        for blend in blends(accent):
            assert not set(shares(blend)) & set(HELD_OUT_VOICES)
            assert set(shares(blend)) & set(voices)


def test_a_blend_is_a_sum_of_voices() -> None:
    assert shares("af_heart+am_puck") == {"af_heart": 0.5, "am_puck": 0.5}
    assert shares("af_sky+af_sky+am_puck+bf_emma") == {
        "af_sky": 0.5,
        "am_puck": 0.25,
        "bf_emma": 0.25,
    }
    assert shares("if_sara+if_sara+if_sara-am_puck") == {"if_sara": 1.5, "am_puck": -0.5}
    made = blends("it")
    assert made == blends("it")
    assert {round(max(shares(name).values()), 2) for name in made} == {0.33, 0.5, 0.67, 1.5}
    assert all(abs(sum(shares(name).values()) - 1) < 1e-9 for name in made)


def test_every_voice_of_a_language_speaks_it() -> None:
    rng = random.Random(0)
    drawn = Counter(draw_voice("en-gb", rng) for _ in range(40000))
    assert set(VOICES["en-gb"]) | set(blends("en-gb")) == set(drawn)
    blended = sum(count for voice, count in drawn.items() if "+" in voice)
    assert 0.35 < blended / 40000 < 0.45


def test_voices_of_the_package_may_get_a_share_of_their_own() -> None:
    rng = random.Random(0)
    drawn = Counter(draw_voice("en-gb", rng, shipped=0.5) for _ in range(40000))
    for voice in SHIPPED_VOICES["en-gb"]:
        assert 0.25 < drawn[voice] / 40000 < 0.5
    assert set(VOICES["en-gb"]) | set(blends("en-gb")) == set(drawn)
    for accent, voices in SHIPPED_VOICES.items():
        assert set(voices) <= set(VOICES[accent])


def test_short_texts_are_answers_words_numbers_and_letters() -> None:
    made = short_texts.short_texts("es", ["pan", "cielo"], random.Random(0))
    drawn = [next(made) for _ in range(2000)]
    assert set(sentences(SHORT["es"])) <= set(drawn)
    assert {"Pan.", "¿Pan?", "cielo"} <= set(drawn)
    assert any(text.strip(".").isdigit() for text in drawn)
    assert any(text.startswith("Number") for text in drawn)
    assert max(len(text.split()) for text in drawn) <= 12


def test_silent_punctuation_varies() -> None:
    rng = random.Random(0)
    drawn = {texts.vary_punctuation("Ça va, toi?", "fr", rng) for _ in range(500)}
    assert {"Ça va, toi?", "Ça va, toi\u00a0?", "«Ça va, toi?»", "Ça va - toi?"} <= drawn
    assert all(normalized(text) == "ca va toi" for text in drawn)


def test_numbers_are_written_out_in_every_language(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("num2words")
    monkeypatch.undo()
    found = [short_texts.in_words("1042", language) for language in ("en", "es", "fr", "it", "pt")]
    assert found == [
        "one thousand and forty-two",
        "mil cuarenta y dos",
        "mille quarante-deux",
        "millequarantadue",
        "mil e quarenta e dois",
    ]
