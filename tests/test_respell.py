"""The tool that ranks respellings by what a recogniser hears."""

from __future__ import annotations

import re
import sys

import numpy as np
import pytest

from tools.respell import (
    arguments,
    candidates,
    closeness,
    generated,
    in_place,
    judged,
    ranked,
    whisper,
)

CARRIER = "They wrote {} on the board."


def said(text: str, seed: int) -> np.ndarray:
    """In place of sound: the text's characters, with the seed at the end."""
    return np.array([*map(ord, text), seed])


def heard_as(words: dict[str, str]):
    """A recogniser that hears some words as others, on even seeds only where they end in '?'."""

    def hear(samples: np.ndarray) -> str:
        text, seed = "".join(map(chr, samples[:-1])), samples[-1]
        for word, other in words.items():
            sometimes = other.endswith("?")
            if not sometimes or seed % 2 == 0:
                text = re.sub(rf"\b{word}\b", other.rstrip("?"), text)
        return text

    return hear


def test_what_is_heard_most_often_comes_first() -> None:
    hear = heard_as({"win": "Nguyen?", "noo": "Nguyen", "yen": "Nguyan", "xyz": "board"})
    tried = ["xyz", "yen", "win", "noo"]
    results = list(
        ranked(
            tried, accepted=["Nguyen"], carriers=[CARRIER], seeds=range(4), speak=said, hear=hear
        )
    )
    # Where none is heard as the word, the closest comes first.
    assert [result.respelling for result in results] == ["noo", "win", "yen", "xyz"]
    assert [result.heard for result in results] == [1.0, 0.5, 0.0, 0.0]
    assert results[2].closeness == pytest.approx(5 / 6)
    assert results[0].words == ("Nguyen",)


def test_every_carrier_and_seed_is_tried_once() -> None:
    calls: list[tuple[str, int]] = []

    def speak(text: str, seed: int) -> np.ndarray:
        calls.append((text, seed))
        return said(text, seed)

    result = judged("win", ["Win"], ["{} came.", CARRIER], range(3), speak, heard_as({}))
    texts = ["win came.", "They wrote win on the board."]
    assert calls == [(text, seed) for text in texts for seed in range(3)]
    assert (result.heard, result.closeness, result.words) == (1.0, 1.0, ("win",))


def test_a_recogniser_may_write_the_word_in_other_ways() -> None:
    hear = heard_as({"win": "Wynn"})
    judging = {"carriers": [CARRIER], "seeds": [0], "speak": said, "hear": hear}
    assert judged("win", ["Nguyen"], **judging).heard == 0
    assert judged("win", ["Nguyen", "Wynn"], **judging).heard == 1


@pytest.mark.parametrize(
    ("heard", "found"),
    [
        ("They wrote Nguyen on the board.", "Nguyen"),
        ("They wrote, new yen, on the board.", "new yen"),
        ("They rote Win on the bored", "Win"),
        ("They wrote on the board.", ""),
        ("", ""),
        ("Something else altogether", "Something else altogether"),
    ],
)
def test_only_what_stands_in_place_of_the_word_counts(heard: str, found: str) -> None:
    assert in_place(CARRIER, heard) == found


def test_closeness_is_of_the_letters() -> None:
    assert closeness("Café!", "cafe") == 1
    assert closeness("gif", "jif") == pytest.approx(2 / 3)
    assert closeness("gif", "") == closeness("", "gif") == 0


def test_rules_make_respellings_that_differ() -> None:
    made = generated("Nguyen", "en", 20)
    assert "nuyen" in made
    assert "nweeen" in made
    assert "Nguyen".lower() not in made
    assert len(made) == len(set(made)) <= 20
    assert generated("GIF", "en", 20)[:2] == ["G I F", "jif"]
    assert generated("Nguyen", "en", 1) == made[:1]
    assert generated("Kawa", "xx", 20) == []
    for language in ("es", "fr", "it", "pt"):
        assert len(generated("Wooksheej", language, 50)) > 5


def test_each_candidate_is_tried_once() -> None:
    assert candidates("gif", ["jif", "gif"], ["jif", "giff"]) == ["gif", "jif", "giff"]


def test_bad_arguments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["GIF", "--carrier", "no place"], ["GIF", "--seeds", "0"], ["..."]):
        with pytest.raises(SystemExit):
            arguments(words)
    assert "a carrier sentence needs one {}" in capsys.readouterr().err
    assert arguments(["GIF", "jif", "--language", "ja"]).carrier == ("{}.",)


def test_without_the_recogniser_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper", None)
    with pytest.raises(SystemExit, match="pip install faster-whisper"):
        whisper("base", "en")
