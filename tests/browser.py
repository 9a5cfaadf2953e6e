"""Real Chromium, and what a visit to the server's page must not do."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Response, sync_playwright

CHROMIUM = shutil.which("chromium")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    # A microphone that beeps once a second, which no page has to ask for.
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
]
PATIENCE = 300_000  # ms
LOUDNESS = """() => {
  const { analyser } = window.nightingale;
  const heard = new Float32Array(analyser.fftSize);
  analyser.getFloatTimeDomainData(heard);
  return Math.sqrt(heard.reduce((sum, x) => sum + x * x, 0) / heard.length);
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Visit:
    """A page opened at a server, with all that went wrong on it."""

    page: Page
    url: str
    faults: list[str] = field(default_factory=list)  # errors and requests to other hosts
    refused: list[tuple[int, str]] = field(default_factory=list)  # status and path

    def hears(self) -> float:
        """The root mean square of what the analyser in the sound's path holds now."""
        return self.page.evaluate(LOUDNESS)

    def _console(self, message: ConsoleMessage) -> None:
        # The browser's own remark on a refusal, which `refused` has with its path.
        remark = message.text.startswith("Failed to load resource: the server responded")
        if message.type in ("error", "warning") and not remark:
            self.faults.append(message.text)

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", f"blob:{self.url}/")):
            self.faults.append(f"outside: {request.url}")

    def _response(self, response: Response) -> None:
        if response.status >= 400:
            self.refused.append((response.status, urlsplit(response.url).path))

    def watch(self) -> None:
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._request)
        self.page.on("response", self._response)


@contextmanager
def visit(browser: Browser, url: str, **options: Any) -> Iterator[Visit]:
    """A visit in a fresh profile; `options` as a browser context takes them."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    try:
        visit = Visit(context.new_page(), url)
        visit.watch()
        visit.page.goto(url)
        yield visit
    finally:
        context.close()
    assert visit.faults == []
    assert visit.refused == []
