"""How the page plays, reads and pictures sound, in Chromium without a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import nightingale

pytest.importorskip("playwright")

from playwright.sync_api import Page, Route

from .browser import CHROMIUM, chromium

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"), pytest.mark.slow]

MODULES = Path(nightingale.__file__).parent / "server" / "page"


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """An empty page of a host that has the modules."""

    def answer(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        if name.endswith(".js"):
            route.fulfill(path=MODULES / name)
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    with chromium() as browser:
        page = browser.new_page()
        page.route("**/*", answer)
        page.goto("http://localhost/")
        yield page


def test_chunks_of_sound_are_played_end_to_end(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { Player } = await import("/player.js");
          const context = new OfflineAudioContext(1, 24000, 24000);
          const playback = new Player(context).begin();
          const noise = (_, i) => ((i * 7919) % 1999 + 1) / 2000;
          const sound = Float32Array.from({ length: 20000 }, noise);
          for (let at = 0, size = 1; at < sound.length; at += size, size = (size * 7) % 1237 + 1) {
            playback.push(sound.slice(at, at + size));
          }
          playback.finish();
          const heard = (await context.startRendering()).getChannelData(0);
          const start = heard.findIndex((x) => x !== 0);
          const wrong = sound.filter((x, i) => heard[start + i] !== x).length;
          return { start, wrong, position: playback.position };
        }"""
    )
    assert found == {"start": 720, "wrong": 0, "position": 20000}


def test_after_a_gap_sound_is_gathered_before_it_goes_on(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { Player } = await import("/player.js");
          const context = new OfflineAudioContext(1, 48000, 24000);
          const playback = new Player(context).begin();
          const sound = Float32Array.from({ length: 14400 }, (_, i) => (i + 1) / 14400);
          const arrive = async (time, from, to) => {
            await context.suspend(time);
            playback.push(sound.slice(from, to));
            context.resume();
          };
          playback.push(sound.slice(0, 2400));
          arrive(0.5, 2400, 4800);
          arrive(0.75, 4800, 14400);
          const heard = [...(await context.startRendering()).getChannelData(0)];
          const gap = heard.indexOf(0, 720);
          const again = heard.findIndex((x, i) => i > gap && x !== 0);
          const order = heard.filter((x) => x !== 0).every((x, i) => x === sound[i]);
          return { gap, again, order, count: heard.filter((x) => x !== 0).length };
        }"""
    )
    assert found["gap"] == 720 + 2400
    assert found["again"] == pytest.approx(0.78 * 24000, abs=128)
    assert (found["order"], found["count"]) == (True, 14400)


def test_samples_are_whole_wherever_the_bytes_are_split(page: Page) -> None:
    samples = np.arange(-3000, 3000, dtype="<i2")
    found = page.evaluate(
        """async (bytes) => {
          const { samplesOf } = await import("/sound.js");
          const body = new ReadableStream({
            start(controller) {
              for (let at = 0, size = 1; at < bytes.length; at += size, size = (size % 9) + 1) {
                controller.enqueue(Uint8Array.from(bytes.slice(at, at + size)));
              }
              controller.close();
            },
          });
          const found = [];
          for await (const chunk of samplesOf(body)) found.push(...chunk);
          return found;
        }""",
        list(samples.tobytes()),
    )
    assert found == samples.tolist()


def test_the_pictures_show_what_sounds_and_when(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { Timeline } = await import("/timeline.js");
          const { spectrum, frequency, BANDS } = await import("/spectrum.js");
          const tone = (hertz) => (_, i) => 0.5 * Math.sin((2 * Math.PI * hertz * i) / 24000);
          const levels = spectrum(Float32Array.from({ length: 1024 }, tone(2250)));
          const loudest = levels.indexOf(Math.max(...levels));
          const timeline = new Timeline();
          for (let part = 0; part < 20; part++) {
            timeline.push(new Float32Array(6000));
            timeline.push(Float32Array.from({ length: 9000 }, tone(1000)));
          }
          const { span, used, peak } = timeline;
          return {
            level: levels[loudest],
            band: [frequency(loudest / BANDS), frequency((loudest + 1) / BANDS)],
            heard: timeline.loudest, span, used, peak,
            silent: timeline.high.subarray(0, used).filter((x) => x === 0).length,
          };
        }"""
    )
    assert found["level"] == pytest.approx(20 * np.log10(0.5), abs=0.01)
    assert found["band"][0] - 12 <= 2250 <= found["band"][1] + 12
    assert found["heard"] == pytest.approx(1000, rel=0.05)
    assert (found["span"], found["used"]) == (24, 313)  # 12.5 s in columns of 40 ms
    assert found["peak"] == pytest.approx(0.5, abs=1e-6)
    assert found["silent"] == pytest.approx(20 * 0.25 / 0.04, abs=20)
