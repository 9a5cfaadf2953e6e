"""Long text: where sentences end, how they become segments, and the pauses between them."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from nightingale.text import Segment, prepare
from nightingale.text.characters import graphemes, speaking_time
from nightingale.text.sentences import split_sentences

from .command import PATIENCE
from .sentence_cases import CASES, LINE_CASES

MARKED = [(language, case) for language, cases in CASES.items() for case in cases]


def texts_of(segments: list[Segment]) -> list[str]:
    return [segment.text for segment in segments]


def written(text: str, language: str = "en", **settings: object) -> list[Segment]:
    """Segments of the text as it is written."""
    return prepare(text, language, expand=False, **settings)


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize(("language", "case"), MARKED)
def test_sentences_end_where_the_table_says(language: str, case: str) -> None:
    expected = [sentence.strip() for sentence in case.split("|")]
    assert split_sentences(case.replace("|", ""), language) == expected


@pytest.mark.parametrize(("language", "text", "expected"), LINE_CASES)
def test_lines_and_lists_are_read_as_they_stand(
    language: str, text: str, expected: list[str]
) -> None:
    assert split_sentences(text, language) == expected


def test_the_table_is_of_the_promised_size() -> None:
    assert len(CASES) >= 12
    assert len(set(MARKED)) + len(LINE_CASES) >= 140


# Segments


def test_a_short_text_is_one_segment() -> None:
    assert written("Hello there, friend.") == [Segment("Hello there, friend.", 0.0, "paragraph")]


WORDS = "the old ship sailed over cold dark water near seven men under grey clouds"


def sentence_of(seconds: float) -> str:
    """An English sentence of about this length, without a comma."""
    words: list[str] = []
    while speaking_time(" ".join(words)) < seconds:
        words.append(WORDS.split()[len(words) % 14])
    return " ".join(words).capitalize() + "."


@pytest.mark.parametrize("times", [1.05, 1.1, 1.3, 1.7, 2.1, 2.6, 3.3, 5.2])
def test_a_long_sentence_is_cut_into_parts_alike(times: float) -> None:
    parts = [speaking_time(segment.text) for segment in written(sentence_of(15 * times))]
    assert len(parts) == int(times) + 1
    assert max(parts) <= 15
    assert max(parts) <= 1.35 * min(parts)


def test_a_cut_falls_at_a_clause_where_there_is_one() -> None:
    clause = sentence_of(7.5)[:-1]
    segments = written(f"{clause}, {clause.lower()}; {clause.lower()}.")
    assert [segment.text[-1] for segment in segments] == [",", ";", "."]
    assert [segment.ends for segment in segments] == ["clause", "clause", "paragraph"]


def test_a_cut_between_words_prefers_a_conjunction() -> None:
    half = sentence_of(8.5)[:-1]
    first, second = written(f"{half} because {half.lower()}.")
    assert second.text.startswith("because ")
    assert first.ends == "cut"


def test_a_clause_far_from_the_middle_is_not_worth_its_place() -> None:
    parts = [speaking_time(text) for text in texts_of(written(f"Yes, {sentence_of(15.5)}"))]
    assert len(parts) == 2
    assert max(parts) < 1.4 * min(parts)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "今天天气很好我们一起去公园散步看花" * 12),
        ("ja", "昨日は友達と公園へ行って桜を見ました" * 12),
        ("ko", "오늘은 날씨가 좋아서 공원에 갔습니다 " * 12),
        ("hi", "आज मौसम बहुत अच्छा है और हम बाग में गए " * 12),
        ("ar", "ذهبنا اليوم إلى الحديقة مع الأصدقاء " * 15),
        ("th", "วันนี้อากาศดีมากเราไปสวนสาธารณะ" * 20),
        ("en", "https://example.com/" + "abcdefghij" * 60),
    ],
)
def test_every_script_is_cut_within_the_limit(language: str, text: str) -> None:
    segments = written(text, language)
    sizes = [speaking_time(segment.text) for segment in segments]
    assert len(segments) > 1
    assert max(sizes) <= 15
    assert max(sizes) <= 1.5 * min(sizes)
    assert squeezed("".join(texts_of(segments))) == squeezed(text)


def test_japanese_is_cut_before_a_new_phrase() -> None:
    first, second = written("私は昨日友達と大きな公園へ行って桜を見ました" * 4, "ja")
    assert re.match("[\u3041-\u309f]", first.text[-1])
    assert not re.match("[\u3041-\u309f]", second.text[0])


def test_short_sentences_are_merged_to_a_comfortable_length() -> None:
    segments = written("It rained all day. " * 40)
    sizes = [speaking_time(segment.text) for segment in segments]
    assert sizes[0] < 2
    assert all(5 < size <= 9 for size in sizes[1:])


def test_long_sentences_are_not_merged() -> None:
    sentence = sentence_of(6)
    assert texts_of(written(f"{sentence} {sentence} {sentence}")) == [sentence] * 3


def test_paragraphs_are_not_merged() -> None:
    segments = written("One small heading\n\nFirst one here. Second one here.\n\nThe end.")
    assert [segment.ends for segment in segments] == ["paragraph", "paragraph", "paragraph"]


def test_the_first_segment_is_one_sentence() -> None:
    segments = written("This is the first sentence. " + "Here is one more sentence. " * 6)
    assert segments[0] == Segment("This is the first sentence.", 0.0, "sentence")
    assert segments[1].text.count(".") > 1


def test_very_short_sentences_have_company() -> None:
    assert written("Hi. How are you doing today? It is a fine day out here.")[0].text == (
        "Hi. How are you doing today?"
    )
    assert len(written("How are you doing today? Fine.")) == 1
    assert len(written(f"Oh. {sentence_of(12)} No.")) == 1


def test_merged_list_items_are_told_apart_and_their_bullets_go() -> None:
    segments = written("- brown bread\n- fresh milk\n- ten eggs")
    assert " ".join(texts_of(segments)) == "brown bread. fresh milk. ten eggs"
    assert texts_of(written("- 面包\n- 牛奶", "zh")) == ["面包。牛奶"]


def test_limit_changes_the_length_of_segments() -> None:
    text = sentence_of(60)
    counts = [len(written(text, limit=limit)) for limit in (5, 15, 30, 100)]
    assert 13 <= counts[0] <= 18
    assert counts[1:] == [5, 3, 1]


def test_count_bounds_the_tokens_of_segments() -> None:
    text = sentence_of(12) + " " + "1234567890 " * 20
    segments = written(text, limit=1000, count=len, max_tokens=50)
    assert max(len(segment.text) for segment in segments) <= 50
    assert squeezed("".join(texts_of(segments))) == squeezed(text)
    unevenly = written("aa " * 60 + "ääää " * 30, limit=1000, count=dear_umlauts, max_tokens=50)
    assert max(dear_umlauts(segment.text) for segment in unevenly) <= 50


def dear_umlauts(text: str) -> int:
    return sum(5 if character == "ä" else 1 for character in text)


@pytest.mark.slow
@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_many_thousand_characters_are_one_call(count: int) -> None:
    prose = (sentence_of(4) + " ") * (count // len(sentence_of(4)))
    for text in (
        prose,
        "天" * count,
        "a" * count,
        "? " * (count // 2) + "a",
        "- a\n" * (count // 4),
    ):
        segments = written(text)
        assert max(speaking_time(segment.text) for segment in segments) <= 15
        assert sum(len(re.findall(r"\w", segment.text)) for segment in segments) == len(
            re.findall(r"\w", text)
        )


def test_rows_of_marks_are_shortened() -> None:
    assert texts_of(written("Stop!!!!!!!!!!!!")) == ["Stop!!!"]
    (segment,) = written("One.\n\n" + "-=" * 5000 + "\n")
    assert segment.text.startswith("One. -=-=")
    assert len(segment.text) < 40


@pytest.mark.parametrize(
    "cluster",
    [
        "e\u0301",
        "क्षि",
        "\u1112\u1161\u11ab",
        "👨‍👩‍👧",
        "👍🏽",
        "🇩🇪",
        "\ud83d\ude00",
        "ﾊﾟ",
        "กำ",
        "a" + "\u0302\u0323\u0308",
    ],
)
def test_no_grapheme_is_cut(cluster: str) -> None:
    assert graphemes(cluster * 3) == [cluster] * 3
    text = f"{cluster}x" * 100
    segments = written(text, limit=1000, count=len, max_tokens=17)
    assert len(segments) > 10
    assert [part for segment in segments for part in graphemes(segment.text)] == graphemes(text)


# Pauses


@pytest.mark.parametrize(
    ("mark", "seconds"),
    [
        ("[pause]", 0.5),
        ("[pause 500ms]", 0.5),
        ("[pause 1.5s]", 1.5),
        ("[pause 2 s]", 2.0),
        ("[PAUSE 250 MS]", 0.25),
        ("[ Pause .5s ]", 0.5),
        ("[pause 30s]", 30.0),
        ("[pause 0s]", 0.0),
        ("[pause:0.5]", 0.5),
        ("[pause:500ms]", 0.5),
        ("[Pause : 2 S]", 2.0),
        ("[pause: .25]", 0.25),
        ("[pause:30]", 30.0),
    ],
)
def test_a_mark_is_a_pause_after_what_stands_before_it(mark: str, seconds: float) -> None:
    assert written(f"Wait {mark} now.") == [
        Segment("Wait", seconds, "clause"),
        Segment("now.", 0.0, "paragraph"),
    ]


@pytest.mark.parametrize(
    "mark",
    [
        *("[pause -3s]", "[pause soon]", "[pause 31s]", "[pause 30001ms]", "[pause 5]"),
        *("[pause 1m]", "[pause:31]", "[pause:-1]", "[pause:]", "[pause:1m]", "[pause:1,5]"),
    ],
)
def test_a_malformed_mark_is_refused(mark: str) -> None:
    with pytest.raises(ValueError, match=r"\[pause 500ms\].* at most 30 s") as error:
        prepare(f"Wait {mark} now.")
    assert mark in str(error.value)


def test_pauses_without_text_before_them_are_segments_of_their_own() -> None:
    assert written("[pause 1s] Yes.") == [
        Segment("", 1.0, "cut"),
        Segment("Yes.", 0.0, "paragraph"),
    ]
    assert written("[pause 1s] [pause 2s] Yes.")[0] == Segment("", 3.0, "cut")
    assert written("[pause]") == [Segment("", 0.5, "cut")]


def test_pauses_in_a_row_add_up() -> None:
    assert written("One. [pause 1s][pause 250ms] Two.")[0] == Segment("One.", 1.25, "sentence")


def test_marks_between_pauses_join_a_neighbour() -> None:
    assert written("One [pause] ... [pause] two.") == [
        Segment("One ...", 1.0, "clause"),
        Segment("two.", 0.0, "paragraph"),
    ]
    assert texts_of(written("… [pause] One.")) == ["", "… One."]


def test_a_paragraph_ends_beside_a_pause_too() -> None:
    assert [segment.ends for segment in written("One\n\n[pause] Two. [pause]\n\nThree")] == [
        "paragraph",
        "paragraph",
        "paragraph",
    ]


def test_other_brackets_are_text() -> None:
    assert texts_of(written("Ha [laughter] ha [pauses] ha.")) == ["Ha [laughter] ha [pauses] ha."]


def test_the_documented_example_is_what_comes_out() -> None:
    assert prepare("Dr. Lee paid $5. [pause 1s] Did you?") == [
        Segment("Doctor Lee paid five dollars.", 1.0, "sentence"),
        Segment("Did you?", 0.0, "paragraph"),
    ]


# What is asked of callers


@pytest.mark.parametrize("text", ["", "   ", "\n\t\u3000"])
def test_nothing_to_speak_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="there is no text to speak"):
        prepare(text)


@pytest.mark.parametrize("limit", [0, -1, float("inf"), float("nan"), "5", True])
def test_a_limit_is_a_positive_number(limit: object) -> None:
    with pytest.raises(ValueError, match="limit must be a number"):
        prepare("Hello.", limit=limit)  # type: ignore[arg-type]


def test_other_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="text must be a string, not bytes"):
        prepare(b"Hello.")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="max_tokens must be between 1 and"):
        prepare("Hello.", max_tokens=0)
    with pytest.raises(ValueError, match="language must be a code such as 'en', not None"):
        prepare("Hello.", None)  # type: ignore[arg-type]


def test_text_without_sound_is_one_segment() -> None:
    assert written("?! ... —") == [Segment("?! ... —", 0.0, "paragraph")]
    assert written("... [pause 1s]") == [Segment("...", 1.0, "paragraph")]


def test_a_text_is_expanded_by_the_rules_of_its_language() -> None:
    assert texts_of(prepare("Dr. Lee paid $5.")) == ["Doctor Lee paid five dollars."]
    assert texts_of(prepare("Dr. Lee paid $5.", "EN")) == ["Doctor Lee paid five dollars."]
    assert texts_of(prepare("Dr. Lee zahlt $5.", "de")) == ["Dr. Lee zahlt fünf Dollar."]
    assert texts_of(prepare("Dr. Lee paid $5.", "xx")) == ["Dr. Lee paid $5."]
    assert texts_of(prepare("Dr. Lee paid $5.", expand=False)) == ["Dr. Lee paid $5."]


def test_the_work_is_imported_when_there_is_text() -> None:
    program = "import sys, nightingale.text; print(*sorted(sys.modules))"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    loaded = done.stdout.split()
    assert "nightingale.text.segments" in loaded
    assert not {"nightingale.text.english", "nightingale.text.sentences"} & set(loaded)
