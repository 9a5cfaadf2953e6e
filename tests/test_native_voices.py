"""What the names of voices say."""

from __future__ import annotations

import pytest

from nightingale.native_voices import native_language, native_voice, sex_of

VOICES = ["default", "af_heart", "am_michael", "bm_george", "ef_dora", "Anna"]


@pytest.mark.parametrize(
    ("name", "language", "sex"),
    [
        ("af_heart", "en", "female"),
        ("bm_george", "en", "male"),
        ("pf_dora", "pt", "female"),
        ("xf_other", None, None),
        ("ax_heart", None, None),
        ("Anna", None, None),
        ("default", None, None),
    ],
)
def test_a_name_tells_language_and_sex(name: str, language: str | None, sex: str | None) -> None:
    assert (native_language(name), sex_of(name)) == (language, sex)


def test_a_native_voice_has_the_sex_where_there_is_one() -> None:
    assert native_voice(VOICES, "en") == "af_heart"
    assert native_voice(VOICES, "en", "male") == "am_michael"
    assert native_voice(VOICES, "es", "male") == "ef_dora"
    assert native_voice(VOICES, "fr") is None
