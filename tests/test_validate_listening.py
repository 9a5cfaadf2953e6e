"""The blind listening page of `validate --ab`."""

from __future__ import annotations

import base64
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import cli
from nightingale.validate import listening
from nightingale.validate.listening import Clip, Model, Recordings

from .command import names_in

pytestmark = pytest.mark.slow

RATE = 24000


def tone(hertz: float, gain: float = 0.2, seconds: float = 0.3) -> np.ndarray:
    return gain * np.sin(2 * np.pi * hertz * np.arange(int(seconds * RATE)) / RATE)


def page_of(path: Path) -> dict:
    html = path.read_text(encoding="utf-8")
    (content,) = re.findall(r'<script id="page" type="application/json">(.*?)</script>', html, re.S)
    return json.loads(content)


def sound_of(url: str) -> np.ndarray:
    head, content = url.split(",")
    assert head == "data:audio/flac;base64"
    samples, rate = soundfile.read(io.BytesIO(base64.b64decode(content)))
    assert rate == RATE
    return samples


def key_of(page: dict) -> dict:
    return json.loads(base64.b64decode(page["key"]))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Recordings of A at 400 Hz and up, of B at 1000 Hz and up and twice as loud."""
    for folder, hertz, gain in (("a", 400, 0.2), ("b", 1000, 0.4)):
        (tmp_path / folder).mkdir()
        for number in range(6):
            samples = tone(hertz + 10 * number, gain)
            soundfile.write(tmp_path / folder / f"text {number}.wav", samples, RATE)
    soundfile.write(tmp_path / "a" / "alone.wav", tone(300), RATE)
    return tmp_path / "a", tmp_path / "b"


def test_recordings_are_paired_by_name_shuffled_and_at_one_level(
    folders: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page_file = tmp_path / "page.html"
    command = ["validate", "--ab", *map(str, folders), "-o", str(page_file), "--seed", "4"]
    assert cli.main(command) == 0
    assert capsys.readouterr().out.endswith("pairs to listen to: 6\n")
    page = page_of(page_file)
    texts = [trial["text"] for trial in page["trials"]]
    assert sorted(texts) == [f"text {number}" for number in range(6)]
    assert texts != sorted(texts)
    key = key_of(page)
    assert key["names"] == {"A": str(folders[0]), "B": str(folders[1])}
    assert set(key["orders"]) == {"AB", "BA"}
    for trial, order in zip(page["trials"], key["orders"], strict=True):
        number = int(trial["text"][-1])
        sounds = dict(zip(order, map(sound_of, trial["clips"]), strict=True))
        for name, hertz in (("A", 400), ("B", 1000)):
            np.testing.assert_allclose(sounds[name], tone(hertz + 10 * number), atol=3e-4)
    first = page_file.read_bytes()
    assert cli.main(command) == 0
    assert page_file.read_bytes() == first


def test_the_page_asks_for_nothing_outside_and_hides_the_names(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    page_file = tmp_path / "page.html"
    assert cli.main(["validate", "--ab", *map(str, folders), "-o", str(page_file)]) == 0
    html = re.sub(r"base64,[A-Za-z0-9+/=]+", "", page_file.read_text(encoding="utf-8"))
    for outside in ("http", "//cdn", "@import", "src=", "fetch(", "XMLHttpRequest", "<link"):
        assert outside not in html
    assert str(folders[0]) not in html
    assert str(folders[1]) not in html


def test_two_settings_of_a_model_speak_the_same_texts(
    checkpoint: Path, device: str, tmp_path: Path
) -> None:
    page_file = tmp_path / "page.html"
    command = ["validate", "--ab", str(checkpoint), f"{checkpoint},seed=9,max_tokens=10"]
    command += [
        "--text",
        "Is 1 < 2?</script>",
        "--text",
        "Good.",
        "--max-tokens",
        "12",
        "--steps",
        "2",
    ]
    assert cli.main([*command, "--device", device, "-o", str(page_file)]) == 0
    page = page_of(page_file)
    assert {trial["text"] for trial in page["trials"]} == {"Is 1 < 2?</script>", "Good."}
    for trial, order in zip(page["trials"], key_of(page)["orders"], strict=True):
        lengths = dict(zip(order, (len(sound_of(clip)) for clip in trial["clips"]), strict=True))
        assert lengths == {"A": 960 * 11, "B": 960 * 9}


def test_the_options_of_loading_hold_for_both_sides(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []

    def load(model: str, **options: object) -> nightingale.TTS:
        loaded.append(options)
        return nightingale.load(model, **options)

    monkeypatch.setattr(listening, "load", load)
    command = ["validate", "--ab", str(checkpoint), f"{checkpoint},seed=9,kv_bits=8"]
    command += ["--text", "Good.", "--max-tokens", "4", "--steps", "1", "--device", "cpu"]
    command += ["--bits", "8", "--kv-bits", "4", "--kv-budget", "0.5", "--offline"]
    assert cli.main([*command, "-o", str(tmp_path / "page.html")]) == 0
    asked = {"bits": 8, "kv_bits": 4, "kv_budget": 0.5, "device": "cpu", "offline": True}
    assert loaded == [asked, asked | {"kv_bits": 8}]
    draft = [*command[:2], str(checkpoint), f"{checkpoint},seed=9", *command[4:10]]
    assert cli.main([*draft, "--draft", "ngram", "-o", str(tmp_path / "page.html")]) == 0
    assert loaded[2:] == [{"draft": "ngram"}] * 2


def test_recordings_beside_a_model_belong_to_the_texts_in_the_order_of_their_names(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    spoken = [Clip(tone(2000)[:, None], RATE)] * 6
    monkeypatch.setattr(Model, "clips", lambda self, texts, tick: spoken)
    texts = [f"said {number}" for number in range(6)]
    recordings = listening.side(str(folders[1]), {}, {})
    trials = listening.trials(recordings, Model("any", {}, {}), texts)
    for trial in trials:
        clip = trial.clips[trial.order.index("A")]
        np.testing.assert_allclose(
            clip.samples[:, 0], tone(1000 + 10 * int(trial.text[-1])), atol=1e-3
        )
    with pytest.raises(ValueError, match="recordings: 6, texts: 2; give the text of each"):
        listening.trials(recordings, Model("any", {}, {}), texts[:2])


def test_a_side_is_a_file_a_folder_or_a_model_with_settings(
    folders: tuple[Path, Path], checkpoint: Path
) -> None:
    file = folders[0] / "alone.wav"
    assert listening.side(str(file), {}, {}) == Recordings((file,))
    loading, settings = {"device": "cpu", "dtype": None}, {"seed": 1}
    plain = listening.side(str(checkpoint), loading, settings)
    assert plain == Model(str(checkpoint), loading, settings)
    own = listening.side(f"{checkpoint},dtype=bfloat16,steps=4,speed=1.5", loading, settings)
    assert own.loading == {"device": "cpu", "dtype": "bfloat16"}
    assert own.speech == {"seed": 1, "steps": 4, "speed": 1.5}
    assert listening.side("owner/name,seed=2", {}, {}) == Model("owner/name", {}, {"seed": 2})


@pytest.mark.parametrize(
    ("given", "phrase"),
    [
        ("no/such/place", "there is no folder or file no/such/place"),
        ("{empty}", "has neither a T3 checkpoint nor recordings (.wav, .flac, .ogg, .mp3, .opus)"),
        ("{text}", "cannot read"),
        ("{model},loud=1", "'loud=1' is not name=value with one of variant, preset, bits, dtype"),
        ("{model},steps=many", "steps must be a number, not 'many'"),
        ("{model}", "A and B give the same samples: there is nothing to listen for"),
    ],
)
def test_what_cannot_be_heard_is_refused_and_leaves_no_page(
    given: str, phrase: str, checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.wav").write_text("no sound")
    names = {"empty": tmp_path / "empty", "text": tmp_path / "text.wav", "model": checkpoint}
    page = tmp_path / "page.html"
    command = ["validate", "--ab", str(checkpoint), given.format(**names), "-o", str(page)]
    assert cli.main([*command, "--text", "Hello.", "--max-tokens", "9", "--steps", "2"]) == 1
    assert phrase in capsys.readouterr().err
    assert names_in(tmp_path) == ["empty", "text.wav"]
