"""How the page plays, reads and pictures sound, in Chromium without a server."""

from __future__ import annotations

import base64
import json
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


def test_sound_can_be_paused_moved_and_played_again(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { Player } = await import("/player.js");
          const context = new OfflineAudioContext(1, 24000, 24000);
          const playback = new Player(context).begin();
          const sound = Float32Array.from({ length: 9000 }, (_, i) => (i + 1) / 9000);
          const places = [];
          const at = async (time, act) => {
            await context.suspend(time);
            act();
            places.push(playback.position, playback.playing);
            context.resume();
          };
          playback.push(sound.slice(0, 4000));
          at(0.128, () => playback.pause());
          at(0.32, () => playback.seek(6000));
          at(0.4, () => playback.push(sound.slice(4000)));
          at(0.48, () => { playback.finish(); playback.seek(8000); playback.play(); });
          at(0.64, () => playback.play());
          const heard = [...(await context.startRendering()).getChannelData(0)];
          const fade = Math.round(0.128 * 24000 + 0.02 * 24000);
          return {
            places, total: playback.position, over: playback.over,
            first: heard.slice(720, 3072).every((x, i) => x === sound[i]),
            silent: heard.slice(fade + 128, 12000).every((x) => x === 0),
            moved: heard.slice(11520 + 720, 12960).every((x, i) => x === sound[8000 + i]),
            again: heard.slice(15360 + 720, 24000).every((x, i) => x === sound[i]),
          };
        }"""
    )
    # Places of the pause, of the seek beyond what had come, of the chunk, and of both plays.
    assert found["places"] == [2352, False, 4000, False, 4000, False, 8000, True, 0, True]
    assert (found["first"], found["silent"], found["moved"], found["again"]) == (True,) * 4
    assert found["total"] == pytest.approx(24000 - 15360 - 720, abs=128)  # of whole quanta
    assert not found["over"]


def test_events_are_whole_wherever_the_bytes_are_split(page: Page) -> None:
    samples = np.arange(-3000, 3000, dtype="<i2")
    words = [["naïve 🙂", 0.1, 0.2, 0, 7]]
    events = [
        {"type": "speech.audio.delta", "audio": base64.b64encode(part.tobytes()).decode()}
        for part in np.array_split(samples, 7)
    ]
    events.append({"type": "speech.audio.done", "words": words})
    sent = "".join(f"data: {json.dumps(event, ensure_ascii=False)}\n\n" for event in events)
    found = page.evaluate(
        """async (bytes) => {
          const { eventsOf, samplesOf } = await import("/sound.js");
          const body = new ReadableStream({
            start(controller) {
              for (let at = 0, size = 1; at < bytes.length; at += size, size = (size % 9) + 1) {
                controller.enqueue(Uint8Array.from(bytes.slice(at, at + size)));
              }
              controller.close();
            },
          });
          const samples = [];
          let words = [];
          for await (const event of eventsOf(body)) {
            if (event.audio) samples.push(...samplesOf(event.audio));
            words = event.words;
          }
          return { samples, words };
        }""",
        list(sent.encode()),
    )
    assert found == {"samples": samples.tolist(), "words": words}


def test_the_word_that_is_heard_is_highlighted(page: Page) -> None:
    found = page.evaluate(
        """async () => {
          const { Transcript } = await import("/transcript.js");
          const place = document.createElement("div");
          document.body.append(place);
          const sought = [];
          const transcript = new Transcript(place, (second) => sought.push(second));
          transcript.begin("🙂 I am 21, you see.");
          const words = [["i", 0, 0.2, 2, 3], ["am", 0.2, 0.4, 4, 6], ["twenty", 0.5, 0.8, 7, 9]];
          transcript.take(words);
          transcript.take([...words, ["one", 0.8, 1, 7, 9], ["you", 1.1, 1.2, 11, 14]]);
          const seconds = [0.1, 0.39, 0.45, 0.9, 1.1, 5, null];
          const heard = seconds.map((second) => {
            transcript.show(second);
            return place.querySelector(".now")?.textContent ?? "";
          });
          place.querySelectorAll("span")[2].click();
          const spans = [...place.querySelectorAll("span")].map((span) => span.textContent);
          return { heard, spans, text: place.textContent, sought };
        }"""
    )
    assert found == {
        "heard": ["I", "am", "", "21", "you", "", ""],
        "spans": ["I", "am", "21", "you"],
        "text": "🙂 I am 21, you see.",
        "sought": [0.5],
    }


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
