"""The server's page at the width of a phone, by touch, and its states in light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

import httpx
from playwright.sync_api import Browser, Page, expect

from .browser import CHROMIUM, visit
from .command import PATIENCE as SECONDS
from .page_visits import (
    PHONE,
    artefacts,
    assert_accessible,
    assert_fits,
    browser,
    complains,
    says,
    shown,
    text_field,
)
from .serving import Running, serving, until

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
    pytest.mark.slow,
    pytest.mark.nightly,
]

KEY = "a key of eight or more"
TEXT = "Two nightingales sing."
WIDTHS = pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


def assert_shown_well(page: Page, picture: Path) -> None:
    """In light and dark, on a screen of any width."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert_accessible(page)
        page.screenshot(path=f"{picture}-{scheme}.png", full_page=True)
    if page.viewport_size["width"] == PHONE["viewport"]["width"]:
        assert_fits(page)


def test_speech_is_played_again_and_saved_by_touch(
    browser: Browser, server: Running, tmp_path: Path, artefacts: Path
) -> None:
    with visit(browser, server.url, **PHONE) as visiting:
        page = visiting.page
        says(page, "Ready.")
        text_field(page).fill(TEXT)
        page.get_by_role("button", name="Speak").tap()
        until(lambda: visiting.hears() > 0.01)
        says(page, "Spoken: .*")
        page.get_by_role("button", name="Play again").tap()
        until(lambda: visiting.hears() > 0.01)
        page.get_by_role("button", name="Pause").tap()
        until(lambda: visiting.hears() == 0)
        words = page.locator("#transcript span")
        words.nth(1).tap()
        expect(page.locator("#transcript .now")).to_have_text("nightingales")
        assert float(shown(page, "time").split()[0]) > 0
        assert_shown_well(page, artefacts / "phone-paused")
        seconds = float(shown(page, "seconds"))
        for name in ("WAV", "MP3", "Opus"):
            with page.expect_download() as begun:
                page.get_by_role("button", name=f"Download {name}").tap()
            file = tmp_path / begun.value.suggested_filename
            begun.value.save_as(file)
            assert file.name == f"two-nightingales-sing.{name.lower()}"
            assert soundfile.info(file).duration == pytest.approx(seconds, abs=0.1)
        samples, _ = soundfile.read(tmp_path / "two-nightingales-sing.wav", dtype="int16")
        expected = server.speech(TEXT, voice="default", language="en", seed=0).content
        np.testing.assert_array_equal(samples, np.frombuffer(expected, "<i2"))


@WIDTHS
def test_the_microphone_in_all_its_states(
    browser: Browser, server: Running, artefacts: Path, options: dict[str, Any]
) -> None:
    width = "phone" if options else "desk"
    with visit(browser, server.url, permissions=["microphone"], **options) as visiting:
        page = visiting.page
        says(page, "Ready.")
        form = page.get_by_role("form", name="Add a voice")
        form.get_by_label("Name").fill("Mic")
        form.get_by_role("button", name="Record", exact=True).click()
        expect(page.locator("#recording-clock")).to_have_text(re.compile(r"^\d+ s$"))
        assert_shown_well(page, artefacts / f"recording-{width}")
        expect(page.locator("#recording-clock")).to_have_text(re.compile(r"^([2-9]|\d\d+) s$"))
        form.get_by_role("button", name="Stop").click()
        preview = page.get_by_label("What was recorded of the voice")
        expect(preview).to_be_visible()
        page.wait_for_function("audio => audio.duration > 1.5", arg=preview.element_handle())
        assert_shown_well(page, artefacts / f"recorded-{width}")
        form.get_by_role("button", name="Add voice").click()
        says(page, "The voice Mic was added and is chosen.", "upload")
        expect(page.get_by_label("Voice", exact=True)).to_have_value("Mic")
        httpx.delete(f"{server.url}/v1/audio/voices/Mic", timeout=SECONDS).raise_for_status()


@WIDTHS
def test_the_key_and_what_is_wrong_with_it(
    browser: Browser,
    quick_checkpoint: Path,
    tmp_path: Path,
    artefacts: Path,
    options: dict[str, Any],
) -> None:
    width = "phone" if options else "desk"
    (tmp_path / "key").write_text(KEY)
    guarded = ("--key-file", tmp_path / "key")
    with (
        serving(quick_checkpoint, tmp_path / "voices", *guarded) as running,
        visit(browser, running.url, **options) as visiting,
    ):
        page = visiting.page
        complains(page, "This server wants a key.", "key")
        assert_shown_well(page, artefacts / f"key-{width}")
        page.get_by_label("Key of this server").fill("something else")
        page.get_by_role("button", name="Use key").click()
        complains(page, "The server does not take this key.", "key")
        assert_shown_well(page, artefacts / f"key-refused-{width}")
        visiting.refused.clear()
        page.get_by_label("Key of this server").fill(KEY)
        page.get_by_role("button", name="Use key").click()
        says(page, "Ready.")


@WIDTHS
def test_complaints_about_a_text(
    browser: Browser, server: Running, artefacts: Path, options: dict[str, Any]
) -> None:
    with visit(browser, server.url, **options) as visiting:
        page = visiting.page
        says(page, "Ready.")
        text_field(page).fill(" ")
        page.get_by_role("button", name="Speak").click()
        complains(page, "There is no text to speak.")
        assert_shown_well(page, artefacts / f"no-text-{'phone' if options else 'desk'}")
