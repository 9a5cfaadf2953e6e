"""What the tests of the server's page share: fixtures, and how they read and use the page. A module
imports the fixtures that it uses."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Locator, Page, expect

import nightingale

from .browser import PATIENCE, Visit, chromium, visit
from .serving import Running, serving

SHORT = "Hi."
LONG = "The nightingale sings at night, when the other birds are quiet. " * 20
NATIVE = ["af_heart", "bm_george", "ef_dora"]
PHONE = {"viewport": {"width": 320, "height": 640}, "is_mobile": True, "has_touch": True}


def with_native_voices(checkpoint: Path, folder: Path) -> Path:
    """A copy of a checkpoint with voices whose names say what is native to them."""
    shutil.copytree(checkpoint, folder, copy_function=os.link)
    (folder / "voices").mkdir()
    for name in NATIVE:
        nightingale.Voice.load(folder / "conds.pt").save(folder / f"voices/{name}.safetensors")
    return folder


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server of a model with native voices."""
    folder = tmp_path_factory.mktemp("page")
    checkpoint = with_native_voices(quick_checkpoint, folder / "checkpoint")
    with serving(checkpoint, folder / "voices") as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with chromium() as browser:
        yield browser


@pytest.fixture
def visiting(browser: Browser, server: Running) -> Iterator[Visit]:
    """A visit to the page of the module's server."""
    with visit(browser, server.url) as visiting:
        says(visiting.page, "Ready.")
        yield visiting


@pytest.fixture(scope="module")
def artefacts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots are kept."""
    given = request.config.getoption("--artefacts")
    folder = Path(given or tmp_path_factory.mktemp("artefacts"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def says(page: Page, pattern: str, form: str = "speech") -> re.Match[str]:
    """Waits until the live region of a form says this."""
    region = page.locator(f"#{form}-status")
    expect(region).to_have_text(re.compile(f"^{pattern}$"))
    return re.match(pattern, region.text_content())


def complains(page: Page, pattern: str, form: str = "speech") -> None:
    expect(page.locator(f"#{form}-error")).to_have_text(re.compile(f"^{pattern}$"))


def shown(page: Page, name: str) -> str:
    return page.locator(f"#{name}").text_content()


def text_field(page: Page) -> Locator:
    return page.get_by_label("Text", exact=True)


def assert_accessible(page: Page) -> None:
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert len(results.response["passes"]) > 20


def assert_fits(page: Page, controls: int | None = None) -> None:
    """Nothing lies beyond a phone's screen, and a thumb finds every control."""
    assert page.evaluate("document.scrollingElement.scrollWidth") == 320
    found = page.locator("button:visible, input:visible, select:visible, textarea:visible")
    assert controls is None or found.count() == controls
    for control in found.all():
        box = control.bounding_box()
        assert box["height"] >= 44
        assert box["width"] >= 44
        assert 0 <= box["x"] <= box["x"] + box["width"] <= 320


def upload(page: Page, name: str, recording: bytes) -> None:
    page.get_by_label("Name").fill(name)
    file: Any = {"name": "recording.wav", "mimeType": "audio/wav", "buffer": recording}
    page.get_by_label("Recording", exact=True).set_input_files(file)
    page.get_by_role("button", name="Add voice").click()
