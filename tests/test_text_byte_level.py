"""Turbo's tokenizer: byte-level BPE with tags that nothing before it changes."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nightingale import Error
from nightingale.text import Segment, normalise_punctuation
from nightingale.text.byte_level import ADDED_TOKENS, MERGES, VOCABULARY, ByteLevelTokenizer
from nightingale.text.lexicon import Lexicon
from nightingale.text.punctuation import ENGLISH, TURBO
from nightingale.text.tags import SOUNDS
from nightingale.text.tokenized import tokenized_segments
from tools.synthetic.byte_level import STYLES, TAGS, write_byte_level

ENGLISH_ONLY = {"en": "English"}
SIZE = 400


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("byte_level")
    write_byte_level(folder, SIZE)
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> ByteLevelTokenizer:
    return ByteLevelTokenizer(folder / VOCABULARY, ENGLISH_ONLY)


@pytest.fixture(scope="module")
def vocabulary(folder: Path) -> dict[str, int]:
    return json.loads((folder / VOCABULARY).read_text("utf-8"))


def prepared(tokenizer: ByteLevelTokenizer, text: str, **options: object) -> list[Segment]:
    return tokenized_segments(tokenizer, text, "en", **options)  # type: ignore[arg-type]


def texts(segments: list[Segment]) -> list[str]:
    return [str(segment.text) for segment in segments]


def test_words_are_merged_and_a_space_goes_with_the_word_after_it(
    tokenizer: ByteLevelTokenizer, vocabulary: dict[str, int]
) -> None:
    expected = ["H", "e", "llo", "Ġthe", "re", "."]
    assert tokenizer.encode("Hello there.").tolist() == [vocabulary[token] for token in expected]


def test_bytes_spell_what_no_token_has(
    tokenizer: ByteLevelTokenizer, vocabulary: dict[str, int]
) -> None:
    # The two bytes of ï, C3 and AF, are printable in Latin-1.
    assert tokenizer.encode("Aï.").tolist() == [vocabulary[token] for token in "AÃ¯."]
    assert len(tokenizer.encode("好.")) == 4


def test_each_tag_is_one_token_after_the_vocabulary(tokenizer: ByteLevelTokenizer) -> None:
    assert len(TAGS) == 19
    ids = [tokenizer.encode(f"A{tag}!").tolist()[1:-1] for tag in TAGS]
    assert ids == [[SIZE - 19 + i] for i in range(19)]
    assert tokenizer.tags.sounds == SOUNDS
    assert tokenizer.tags.styles == STYLES


@pytest.mark.parametrize(
    ("text", "turbo", "english"),
    [
        ("wait... what", "Wait... what.", "Wait,  what."),
        ("One - two", "One - two.", "One, two."),
        ("One; two", "One; two.", "One,  two."),
        ("One… two: three", "One,  two, three.", "One,  two, three."),
        ("A — b – c ,d", "A - b - c,d.", "A - b - c,d."),
        ("“Yes,” she’s ‘in’", "\"Yes,\" she's 'in'.", "\"Yes,\" she's 'in'."),
        ("so -", "So -", "So -"),
        ("[laugh] yes", "[laugh] yes.", "[laugh] yes."),
        ("yes [laugh]", "Yes [laugh].", "Yes [laugh]."),
    ],
)
def test_punctuation_of_turbo_keeps_ellipses_hyphens_and_semicolons(
    text: str, turbo: str, english: str
) -> None:
    assert normalise_punctuation(text, TURBO) == turbo
    assert normalise_punctuation(text, ENGLISH) == english


def test_tokens_know_their_words_and_words_their_place(tokenizer: ByteLevelTokenizer) -> None:
    text = "Hello[laugh] there,  my [clear throat] “naïve” friend!"
    encoded = tokenizer.encode_words(text, "en")
    shown = ["Hello", "[laugh]", "there", "my", "[clear throat]", "naïve", "friend"]
    assert encoded.words == shown
    assert [text[slice(*word.source)] for word in encoded.words] == shown
    assert len(encoded.word_of) == len(encoded.ids)
    spelled: dict[int, str] = {}
    for id, word in zip(encoded.ids, encoded.word_of, strict=True):
        spelled[word] = spelled.get(word, "") + tokenizer._tokenizer.id_to_token(int(id))
    # A space that is a token by itself goes with the word before it.
    tagged = ["Hello", "[laugh]", "Ġthere,", "ĠmyĠ", "[clear throat]Ġ"]
    assert list(spelled.values()) == [*tagged, '"naÃ¯ve"', "Ġfriend!"]


@pytest.mark.parametrize("text", ["...", "?!", "( )"])
def test_marks_alone_have_no_words(text: str, tokenizer: ByteLevelTokenizer) -> None:
    assert tokenizer.encode_words(text, "en")[1:3] == ([], [])


@pytest.mark.parametrize("character", ["好", "こ", "Ж", "Ωδή", "م", "न", "🙂", "→", "\ue000", "٣"])
def test_other_scripts_and_emoji_are_not_spoken(
    character: str, tokenizer: ByteLevelTokenizer
) -> None:
    [segment] = prepared(tokenizer, f"Well, {character} then.")
    assert segment.text == "Well, then."
    assert "".join(segment.unspoken) == character
    with pytest.raises(ValueError, match="this model cannot speak"):
        prepared(tokenizer, f"{character} {character}")


@pytest.mark.parametrize("character", ["é", "ß", "ł", "Ǆ", "ﬁ", "$", "¬", "ª", "₿", "ə", "e\u0301"])
def test_latin_letters_and_common_signs_are_spoken(
    character: str, tokenizer: ByteLevelTokenizer
) -> None:
    [segment] = prepared(tokenizer, f"Well, x {character} y then.")
    assert segment.unspoken == ()
    assert character in segment.text


def test_tags_stay_as_they_are_where_a_text_is_written_out(tokenizer: ByteLevelTokenizer) -> None:
    [segment] = prepared(tokenizer, "It is $5 [laugh](really) [sigh] 3 times[cough], Mr. X.")
    expected = "It is five dollars [laugh](really) [sigh] three times[cough], Mister X."
    assert segment.text == expected


def test_a_tag_is_never_cut(tokenizer: ByteLevelTokenizer) -> None:
    text = "we went on and [clear throat] on and on [laugh] " * 60
    segments = prepared(tokenizer, text)
    assert len(segments) > 5
    joined = " ".join(texts(segments))
    assert joined == text.strip()
    for tag, count in (("[clear throat]", 60), ("[laugh]", 60)):
        assert sum(segment.text.count(tag) for segment in segments) == count
    assert all(segment.text.count("[") == segment.text.count("]") for segment in segments)


def test_tags_in_a_row_without_spaces_are_cut_between_tags(tokenizer: ByteLevelTokenizer) -> None:
    segments = prepared(tokenizer, "[clear throat]" * 100)
    assert "".join(texts(segments)) == "[clear throat]" * 100
    assert len(segments) > 1
    assert all(segment.text.startswith("[") and segment.text.endswith("]") for segment in segments)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("That was really very funny. [laugh] I agree with all of it.", 2),
        ("That was really very funny. [laugh] and we all agreed with it.", 1),
        ("That was really very funny. [laugh]", 1),
        ("It was Prof. [cough] Smith who said it to all of us.", 1),
    ],
)
def test_sentences_end_where_they_would_without_the_tag(
    text: str, sentences: int, tokenizer: ByteLevelTokenizer
) -> None:
    segments = prepared(tokenizer, text)
    assert len(segments) == sentences
    assert " ".join(texts(segments)) == text


def test_a_tag_alone_is_spoken(tokenizer: ByteLevelTokenizer) -> None:
    [segment] = prepared(tokenizer, "[sigh]")
    assert segment.encoded is not None
    assert segment.encoded.words == ["[sigh]"]
    np.testing.assert_array_equal(segment.encoded.ids, tokenizer.encode("[sigh]."))


@pytest.mark.parametrize(
    ("text", "markup"),
    [
        ("<speak>Well <break time='1s'/> [clear throat] yes.</speak>", "ssml"),
        ("**Well** [clear throat] *yes*.", "markdown"),
        ("<p>Well <b>[clear throat]</b> yes.</p>", "html"),
    ],
)
def test_tags_pass_through_markup(text: str, markup: str, tokenizer: ByteLevelTokenizer) -> None:
    segments = prepared(tokenizer, text, markup=markup)
    words = [word for segment in segments if segment.encoded for word in segment.encoded.words]
    assert words == ["Well", "[clear throat]", "yes"]
    assert [text[slice(*word.source)] for word in words] == words


def test_a_lexicon_leaves_tags_alone(tokenizer: ByteLevelTokenizer) -> None:
    lexicon = Lexicon.of({"laugh": "laff", "clear": "kleer"})
    [segment] = prepared(tokenizer, "A clear laugh: [laugh](so) [clear throat].", lexicon=lexicon)
    assert segment.text == "A kleer laff: [laugh](so) [clear throat]."


def test_what_is_no_tag_of_the_model_is_text(tokenizer: ByteLevelTokenizer) -> None:
    [segment] = prepared(tokenizer, "Well [Laugh] and [giggle] then.")
    assert segment.text == "Well [Laugh] and [giggle] then."
    assert segment.encoded is not None
    assert segment.encoded.words == ["Well", "Laugh", "and", "giggle", "then"]


def test_characters_that_stand_for_tags_inside_are_not_taken_from_a_text(
    tokenizer: ByteLevelTokenizer,
) -> None:
    [segment] = prepared(tokenizer, "Well \U00100000 then \U00100020 [sigh].")
    assert segment.text == "Well then [sigh]."
    assert segment.unspoken == ("\ufffd", "\ufffd")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (MERGES, None, "not its merges.txt"),
        (ADDED_TOKENS, None, "not its added_tokens.json"),
        (ADDED_TOKENS, "[", "is not JSON"),
        (ADDED_TOKENS, "[]", "expected an object of ids by token"),
        (ADDED_TOKENS, '{"[laugh]": "x"}', "expected an object of ids by token"),
        (ADDED_TOKENS, '{"[laugh]": 7}', r"\[laugh\] has id 7; expected 381"),
        (VOCABULARY, "{", "are not a tokenizer"),
        (MERGES, "#version: 0.2\nx y\n", "are not a tokenizer"),
    ],
)
def test_broken_files_are_named(
    name: str, content: str | None, message: str, tmp_path: Path
) -> None:
    write_byte_level(tmp_path, SIZE)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_text(content, "utf-8")
    with pytest.raises(Error, match=message) as raised:
        ByteLevelTokenizer(tmp_path / VOCABULARY, ENGLISH_ONLY)
    assert name in str(raised.value)


def test_the_languages_are_those_of_the_model(tokenizer: ByteLevelTokenizer) -> None:
    assert tokenizer.languages == ENGLISH_ONLY
    with pytest.raises(ValueError, match="this model speaks en"):
        tokenizer.encode("Hallo.", "de")
