"""The server's page, used in Chromium as people use it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

import httpx
from playwright.sync_api import Browser, expect

from nightingale.options import LARGEST_SEED

from .browser import CHROMIUM, Visit, visit
from .command import PATIENCE as SECONDS
from .page_visits import (
    PHONE,
    SHORT,
    artefacts,
    assert_accessible,
    assert_fits,
    browser,
    says,
    server,
    shown,
    text_field,
    visiting,
)
from .serving import Running, until

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"), pytest.mark.slow]


def events(body: bytes) -> list[dict[str, Any]]:
    """The server-sent events of an answer."""
    return [json.loads(line.removeprefix(b"data: ")) for line in body.split(b"\n\n") if line]


def test_speaks_what_is_typed_and_tells_how_fast(visiting: Visit, artefacts: Path) -> None:
    page = visiting.page
    text_field(page).fill(SHORT)
    expect(page.get_by_role("region", name="Sound")).to_be_hidden()
    page.get_by_role("button", name="Speak").click()
    until(lambda: visiting.hears() > 0.01)
    says(page, "Speaking.")
    page.screenshot(path=artefacts / "speaking.png", full_page=True)
    told = says(
        page, r"Spoken: (\S+) s of speech, first sound after (\d+) ms, real-time factor (\S+)\."
    )
    assert (shown(page, "seconds"), shown(page, "first-audio")) == told.group(1, 2)
    assert shown(page, "real-time-factor") == told[3]
    seconds, first_audio, factor = map(float, told.groups())
    assert seconds == pytest.approx(2.16, abs=0.05)
    assert 0 < first_audio / 1000 <= (factor + 0.01) * seconds
    for picture in ("Waveform", "Spectrogram"):
        expect(page.get_by_role("img", name=f"{picture}: {told[1]} seconds")).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert_accessible(page)
        page.screenshot(path=artefacts / f"spoken-{scheme}.png", full_page=True)


def test_speech_can_be_played_again_from_any_word(visiting: Visit, artefacts: Path) -> None:
    page = visiting.page
    text = "Two nightingales 🙂 sing."
    text_field(page).fill(text)
    page.get_by_label("Speed").fill("2")
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    with page.expect_request("**/v1/audio/speech") as asked:
        page.get_by_role("button", name="Speak").click()
    says(page, "Spoken: .*")
    # Asked again, as Chromium does not always keep what it has streamed.
    same = httpx.post(asked.value.url, json=asked.value.post_data_json, timeout=SECONDS)
    words = [word for event in events(same.content) for word in event.get("words", [])]
    assert len(words) >= 3

    page.get_by_role("button", name="Play again").click()
    until(lambda: visiting.hears() > 0.01)
    page.get_by_role("button", name="Pause").click()
    until(lambda: visiting.hears() == 0)
    position = page.get_by_label("Position in the sound")
    heard = page.locator("#transcript .now")
    for word, start, end, source_start, source_end in words:
        if end - start < 0.05:
            continue
        position.fill(f"{(start + end) / 2:.2f}")
        expect(heard, word).to_have_text(text[source_start:source_end])
    page.screenshot(path=artefacts / "paused.png", full_page=True)
    seconds = float(shown(page, "seconds"))
    position.focus()
    page.keyboard.press("Home")
    assert shown(page, "time").startswith("0.0 / ")
    page.locator("#transcript span").nth(1).click()
    assert float(shown(page, "time").split()[0]) == pytest.approx(words[1][1], abs=0.06)
    position.fill(f"{seconds - 0.3:.2f}")
    page.get_by_role("button", name="Play", exact=True).click()
    expect(page.get_by_role("button", name="Play again")).to_be_visible()
    expect(heard).to_have_count(0)
    page.get_by_role("button", name="Play again").click()
    until(lambda: visiting.hears() > 0.01)
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert [url for url in requests if url.endswith("/speech")] == [asked.value.url]


def test_the_download_holds_every_sample(visiting: Visit, server: Running, tmp_path: Path) -> None:
    page = visiting.page
    text_field(page).fill(SHORT)
    page.get_by_label("Language").select_option("French")
    page.get_by_label("Seed").fill(str(LARGEST_SEED))  # beyond what JavaScript's numbers hold
    page.get_by_label("Speed").fill("2")
    page.get_by_label("Exaggeration").fill("0.9")
    with page.expect_request("**/v1/audio/speech") as asked:
        page.get_by_role("button", name="Speak").click()
    settings = asked.value.post_data_json
    assert settings == {
        **{"model": "nightingale", "input": SHORT, "voice": "default", "language": "fr"},
        **{"speed": 2, "temperature": 0.8, "cfg_weight": 0.5, "exaggeration": 0.9},
        "seed": LARGEST_SEED,
        "response_format": "pcm",
        "stream_format": "sse",
    }
    says(page, "Spoken: .*")
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download WAV").click()
    assert begun.value.suggested_filename == "hi.wav"
    begun.value.save_as(tmp_path / "hi.wav")
    samples, rate = soundfile.read(tmp_path / "hi.wav", dtype="int16")
    settings["stream_format"] = "audio"
    expected = httpx.post(f"{server.url}/v1/audio/speech", json=settings, timeout=SECONDS)
    assert (rate, samples.ndim) == (24000, 1)
    np.testing.assert_array_equal(samples, np.frombuffer(expected.content, "<i2"))
    for name, format in (("MP3", "mp3"), ("Opus", "opus")):
        with page.expect_download() as begun:
            page.get_by_role("button", name=f"Download {name}").click()
        says(page, f"The {name} file is ready.")
        assert begun.value.suggested_filename == f"hi.{format}"
        begun.value.save_as(tmp_path / f"hi.{format}")
        found = soundfile.info(tmp_path / f"hi.{format}")
        assert found.duration == pytest.approx(len(samples) / 24000, abs=0.1)


def test_voices_are_grouped_and_a_native_one_follows_the_language(visiting: Visit) -> None:
    page = visiting.page
    voice, language = page.get_by_label("Voice", exact=True), page.get_by_label("Language")
    groups = voice.locator("optgroup").evaluate_all(
        "all => all.map(group => [group.label, ...[...group.children].map(one => one.text)])"
    )
    assert groups == [
        ["English", "Heart, American English, woman", "George, British English, man"],
        ["Spanish", "Dora, Spanish, woman"],
    ]
    assert voice.input_value() == "default"
    for chosen, expected in (
        ("Spanish", "ef_dora"),
        ("French", "ef_dora"),
        ("English", "af_heart"),
    ):
        language.select_option(chosen)
        expect(voice).to_have_value(expected)
    voice.select_option("bm_george")
    language.select_option("English")
    expect(voice).to_have_value("bm_george")


def test_the_microphone_makes_a_voice(browser: Browser, server: Running, artefacts: Path) -> None:
    with visit(browser, server.url, permissions=["microphone"]) as visiting:
        page = visiting.page
        says(page, "Ready.")
        form = page.get_by_role("form", name="Add a voice")
        form.get_by_label("Name").fill("Mic")
        form.get_by_role("button", name="Record", exact=True).click()
        expect(page.locator("#recording-clock")).to_have_text(re.compile("^[2-9] s$"))
        form.get_by_role("button", name="Stop").click()
        preview = page.get_by_label("What was recorded of the voice")
        expect(preview).to_be_visible()
        page.wait_for_function("audio => audio.duration > 1.5", arg=preview.element_handle())
        page.screenshot(path=artefacts / "microphone.png", full_page=True)
        form.get_by_role("button", name="Add voice").click()
        says(page, "The voice Mic was added and is chosen.", "upload")
        expect(page.get_by_label("Voice", exact=True)).to_have_value("Mic")
        expect(preview).to_be_hidden()
        httpx.delete(f"{server.url}/v1/audio/voices/Mic", timeout=SECONDS).raise_for_status()


def test_a_phone_shows_all_of_it(browser: Browser, server: Running, artefacts: Path) -> None:
    with visit(browser, server.url, **PHONE) as visiting:
        page = visiting.page
        says(page, "Ready.")
        assert page.locator("canvas:visible").count() == 0
        assert_fits(page, controls=20)
        text_field(page).fill(SHORT)
        page.get_by_role("button", name="Speak").click()
        says(page, "Spoken: .*")
        assert page.locator("canvas:visible").count() == 2
        assert_fits(page, controls=25)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert_accessible(page)
            page.screenshot(path=artefacts / f"phone-{scheme}.png", full_page=True)
