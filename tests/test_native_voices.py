"""What the names of voices say."""

from __future__ import annotations

import pytest

from nightingale.native_voices import (
    native_language,
    native_voice,
    sex_of,
    title_of,
    voice_titled,
)

VOICES = ["default", "af_heart", "am_michael", "bm_george", "ef_dora", "Anna"]


@pytest.mark.parametrize(
    ("name", "title", "language", "sex"),
    [
        ("af_heart", "Heart, American English, woman", "en", "female"),
        ("bm_george", "George, British English, man", "en", "male"),
        ("pf_dora", "Dora, Brazilian Portuguese, woman", "pt", "female"),
        ("em_juan_carlos", "Juan Carlos, Spanish, man", "es", "male"),
        ("xf_other", "xf_other", None, None),
        ("ax_heart", "ax_heart", None, None),
        ("Anna", "Anna", None, None),
        ("default", "default", None, None),
    ],
)
def test_a_name_tells_who_speaks(
    name: str, title: str, language: str | None, sex: str | None
) -> None:
    assert (title_of(name), native_language(name), sex_of(name)) == (title, language, sex)


def test_a_native_voice_has_the_sex_where_there_is_one() -> None:
    assert native_voice(VOICES, "en") == "af_heart"
    assert native_voice(VOICES, "en", "male") == "am_michael"
    assert native_voice(VOICES, "es", "male") == "ef_dora"
    assert native_voice(VOICES, "fr") is None


@pytest.mark.parametrize(
    ("title", "voice"),
    [
        ("Heart, American English, woman", "af_heart"),
        ("george, british english, MAN", "bm_george"),
        ("George, British English, woman", None),
        ("George", None),
        ("bm_george", None),
        ("anna", None),  # a name, which does not say who speaks
        ("", None),
    ],
)
def test_a_voice_has_its_title_in_any_case(title: str, voice: str | None) -> None:
    assert voice_titled(title, [*VOICES, *VOICES]) == voice


def test_a_title_of_two_voices_is_none_of_them() -> None:
    assert voice_titled("Heart, American English, woman", [*VOICES, "af_Heart"]) is None
