"""The server's page, used in Chromium as people use it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")

import httpx
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from nightingale.options import LARGEST_SEED

from .browser import CHROMIUM, PATIENCE, Visit, chromium, visit
from .command import PATIENCE as SECONDS
from .recordings import speech, wav_bytes
from .serving import Running, serving, until

pytestmark = [pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"), pytest.mark.slow]

SHORT = "Hi."
LONG = "The nightingale sings at night, when the other birds are quiet. " * 20
KEY = "a key of eight or more"
PHONE = {"viewport": {"width": 320, "height": 640}, "is_mobile": True, "has_touch": True}


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a key that takes one request and lets one wait."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "key").write_text(KEY)
    options = ("--key-file", folder / "key", "--max-concurrent", "1", "--max-queue", "1")
    with serving(quick_checkpoint, folder / "voices", *options) as running:
        yield running


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE)
    with chromium() as browser:
        yield browser


@pytest.fixture
def visiting(browser: Browser, server: Running) -> Iterator[Visit]:
    with visit(browser, server.url) as visiting:
        says(visiting.page, "Ready.")
        yield visiting


@pytest.fixture(scope="module")
def artefacts(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = request.config.getoption("--artefacts")
    folder = Path(given) if given else tmp_path_factory.mktemp("artefacts")
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


def assert_accessible(page: Page) -> None:
    results = Axe().run(page)
    assert results.violations_count == 0, results.generate_report()
    assert len(results.response["passes"]) > 20


def test_speaks_what_is_typed_and_tells_how_fast(visiting: Visit, artefacts: Path) -> None:
    page = visiting.page
    page.get_by_label("Text").fill(SHORT)
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


def test_tells_what_cannot_be_spoken(visiting: Visit) -> None:
    page = visiting.page
    page.get_by_label("Text").fill(f"{SHORT} 🙂")
    page.get_by_role("button", name="Speak").click()
    says(page, r"Spoken: .* Left out, as the model cannot speak it: 🙂")
    page.get_by_label("Text").fill("🙂")
    page.get_by_role("button", name="Speak").click()
    complains(page, r".*cannot speak 🙂 \(U\+1F642\).*")
    assert visiting.refused == [(400, "/v1/audio/speech")]
    visiting.refused.clear()


def test_a_button_for_each_sound_puts_its_tag_where_the_cursor_is(
    browser: Browser, server: Running
) -> None:
    def with_sounds(route: Route) -> None:
        answer = route.fetch()
        described = answer.json()
        models = described.get("data", [described])
        assert [model.pop("sound_tags") for model in models] == [[]]
        models[0]["sound_tags"] = ["[laugh]", "[clear throat]"]
        route.fulfill(response=answer, json=described)

    with visit(browser, server.url) as visiting:
        page = visiting.page
        says(page, "Ready.")
        expect(page.get_by_role("group", name="Insert a sound")).to_be_hidden()
        page.route("**/v1/models*", with_sounds)
        page.reload()
        says(page, "Ready.")
        assert page.get_by_role("group", name="Insert a sound").get_by_role("button").count() == 2
        text = page.get_by_label("Text", exact=True)
        text.fill("Well, yes.")
        text.evaluate("text => text.setSelectionRange(9, 9)")
        page.get_by_role("button", name="[laugh]").click()
        expect(text).to_have_value("Well, yes [laugh].")
        expect(text).to_be_focused()
        text.evaluate("text => text.setSelectionRange(0, 0)")
        page.get_by_role("button", name="[clear throat]").click()
        expect(text).to_have_value("[clear throat] Well, yes [laugh].")
        assert shown(page, "count").startswith("33 of ")
        assert_accessible(page)


def test_the_download_holds_every_sample(visiting: Visit, server: Running, tmp_path: Path) -> None:
    page = visiting.page
    page.get_by_label("Text").fill(SHORT)
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
    }
    says(page, "Spoken: .*")
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download WAV").click()
    assert begun.value.suggested_filename == "hi.wav"
    begun.value.save_as(tmp_path / "hi.wav")
    samples, rate = soundfile.read(tmp_path / "hi.wav", dtype="int16")
    expected = httpx.post(f"{server.url}/v1/audio/speech", json=settings, timeout=SECONDS)
    assert (rate, samples.ndim) == (24000, 1)
    np.testing.assert_array_equal(samples, np.frombuffer(expected.content, "<i2"))


def test_the_language_can_be_detected(visiting: Visit) -> None:
    page = visiting.page
    languages = page.get_by_label("Language")
    assert languages.input_value() == "en"
    assert languages.locator("option").first.inner_text() == "Detect automatically"
    languages.select_option("Detect automatically")
    text = page.get_by_label("Text", exact=True)
    expect(text).to_have_attribute("lang", "")
    text.fill("Le chat dort sur le tapis.")
    with page.expect_response("**/v1/audio/speech") as answered:
        page.get_by_role("button", name="Speak").click()
    assert answered.value.request.post_data_json["language"] == "auto"
    assert answered.value.headers["nightingale-language"] == "fr"
    says(page, "Spoken: .*")
    languages.select_option("French")
    expect(text).to_have_attribute("lang", "fr")


def test_detection_is_offered_only_where_it_works(browser: Browser, server: Running) -> None:
    def without_detection(route: Route) -> None:
        answer = route.fetch()
        described = answer.json()
        for model in described.get("data", [described]):
            assert model["detects_language"] is True
            model["detects_language"] = False
        route.fulfill(response=answer, json=described)

    with visit(browser, server.url) as visiting:
        page = visiting.page
        says(page, "Ready.")
        page.route("**/v1/models*", without_detection)
        page.reload()
        says(page, "Ready.")
        options = page.get_by_label("Language").locator("option")
        assert "auto" not in options.evaluate_all("all => all.map(one => one.value)")


def test_cancel_ends_the_sound_and_the_work(visiting: Visit, server: Running) -> None:
    page = visiting.page
    page.get_by_label("Text").fill(LONG)
    page.get_by_role("button", name="Speak").click()
    until(lambda: visiting.hears() > 0.01)
    assert server.health()["running"] == 1
    page.get_by_role("button", name="Cancel").click()
    said = says(page, r"Cancelled; (\S+) s of speech had come\.")
    until(lambda: visiting.hears() == 0)
    until(server.idle)
    assert shown(page, "seconds") == said[1]
    expect(page.get_by_role("button", name="Cancel")).to_be_disabled()
    expect(page.get_by_role("button", name="Speak")).to_be_focused()
    expect(page.get_by_role("button", name="Download WAV")).to_be_enabled()


def test_speaking_again_ends_what_was_spoken(visiting: Visit, server: Running) -> None:
    page = visiting.page
    page.get_by_label("Text").fill(LONG)
    page.get_by_role("button", name="Speak").click()
    until(lambda: visiting.hears() > 0.01)
    with page.expect_event("requestfailed") as ended:
        page.get_by_role("button", name="Speak").click()
    assert ended.value.failure == "net::ERR_ABORTED"
    until(lambda: visiting.hears() > 0.01)
    until(lambda: server.health()["running"] == 1)
    expect(page.get_by_role("button", name="Cancel")).to_be_enabled()
    page.get_by_role("button", name="Cancel").click()
    until(server.idle)


def test_the_keyboard_is_enough(visiting: Visit, server: Running) -> None:
    page = visiting.page
    reached = []
    for _ in range(13):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        if reached[-1] == "text":
            page.keyboard.press("Control+A")
            page.keyboard.type(LONG[:80])
    assert reached[:4] == ["text", "language", "voice", "speak"]
    assert reached[4:10] == ["reset", "speed", "temperature", "cfg_weight", "exaggeration", "seed"]
    assert reached[10:] == ["voice-name", "recording", "add-voice"]
    assert shown(page, "count") == "80 of 10,000 characters"
    page.locator("#speed").focus()
    page.keyboard.press("ArrowRight")
    assert shown(page, "speed-value") == "1.05"
    assert shown(page, "exaggeration-value") == "the voice's own"
    with page.expect_request("**/v1/audio/speech") as asked:
        page.keyboard.press("Control+Enter")
    assert asked.value.post_data_json["speed"] == 1.05
    assert "exaggeration" not in asked.value.post_data_json
    until(lambda: visiting.hears() > 0.01)
    page.keyboard.press("Escape")
    says(page, "Cancelled; .*")
    until(server.idle)


def test_sound_held_back_by_the_browser_waits_for_a_key(visiting: Visit) -> None:
    page = visiting.page
    page.get_by_label("Text").fill(LONG)
    page.get_by_role("button", name="Speak").click()
    until(lambda: visiting.hears() > 0.01)
    page.evaluate("nightingale.context.suspend()")
    says(page, "The browser holds the sound back: tap the page or press a key to hear it.")
    page.keyboard.press("Shift")
    says(page, "Speaking.")
    page.keyboard.press("Escape")
    says(page, "Cancelled; .*")


def upload(page: Page, name: str, recording: bytes) -> None:
    page.get_by_label("Name").fill(name)
    file: Any = {"name": "recording.wav", "mimeType": "audio/wav", "buffer": recording}
    page.get_by_label("Recording").set_input_files(file)
    page.get_by_role("button", name="Add voice").click()


def test_a_recording_becomes_a_voice_that_speaks_and_can_be_deleted(
    visiting: Visit, server: Running, artefacts: Path
) -> None:
    page = visiting.page
    voice = page.get_by_label("Voice", exact=True)
    delete = page.get_by_role("button", name="Delete")
    expect(delete).to_be_hidden()
    upload(page, "Zoë", wav_bytes(speech(5, 24000), 24000))
    says(page, "The voice Zoë was added and is chosen.", "upload")
    expect(voice).to_have_value("Zoë")

    with page.expect_request("**/v1/audio/speech") as asked:
        page.get_by_role("button", name="Speak").click()
    assert asked.value.post_data_json["voice"] == "Zoë"
    until(lambda: visiting.hears() > 0.01)
    page.keyboard.press("Escape")
    says(page, "Cancelled; .*")

    delete.click()
    page.screenshot(path=artefacts / "delete.png")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(voice).to_have_value("Zoë")
    delete.click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    says(page, "The voice Zoë was deleted.")
    expect(voice).to_have_value("default")
    expect(voice).to_be_focused()
    expect(delete).to_be_hidden()
    voices = httpx.get(f"{server.url}/v1/audio/voices", timeout=SECONDS).json()["data"]
    assert [voice["id"] for voice in voices] == ["default"]


def test_a_refusal_is_told_in_words_and_loses_nothing(visiting: Visit, server: Running) -> None:
    page = visiting.page
    upload(page, "default", wav_bytes(speech(2, 24000), 24000))
    complains(page, "There is a voice 'default' already.", "upload")
    expect(page.get_by_label("Name")).to_have_value("default")
    upload(page, "Ben", b"no sound at all")
    complains(page, ".*recording.*", "upload")
    path = "/v1/audio/voices"
    assert visiting.refused == [(409, path), (400, path)]
    visiting.refused.clear()

    upload(page, "Ben", wav_bytes(speech(2, 24000), 24000))
    says(page, "The voice Ben was added and is chosen.", "upload")
    complains(page, "", "upload")
    httpx.delete(f"{server.url}{path}/Ben", timeout=SECONDS).raise_for_status()
    page.get_by_label("Text").fill(SHORT)
    page.get_by_role("button", name="Speak").click()
    complains(page, ".*'Ben'.*")
    assert [path for status, path in visiting.refused] == ["/v1/audio/speech"]
    visiting.refused.clear()
    expect(page.get_by_label("Text")).to_have_value(SHORT)
    assert not shown(page, "first-audio").isdigit()


def test_what_cannot_be_asked_is_told_at_its_field(visiting: Visit) -> None:
    page = visiting.page
    for label, value, words in (
        ("Text", " \n", "There is no text to speak."),
        ("Text", "a" * 10_001, "The text is longer than 10,000 characters."),
        ("Seed", "1.5", "The seed must be a whole number from 0 to 18446744073709551615."),
        ("Seed", "", "The seed must be a whole number from 0 to 18446744073709551615."),
        ("Seed", str(2**64), "The seed must be a whole number from 0 to 18446744073709551615."),
    ):
        field = page.get_by_label(label)
        field.fill(value)
        page.keyboard.press("Control+Enter")
        complains(page, words)
        expect(field).to_be_focused()
        expect(field).to_have_attribute("aria-invalid", "true")
        field.fill("7")
        page.keyboard.press("Control+Enter")
        complains(page, "")
        expect(field).to_have_attribute("aria-invalid", "false")
        page.keyboard.press("Escape")
        says(page, "Cancelled; .*")


def test_a_key_is_asked_for_and_kept_for_the_tab(
    browser: Browser, guarded: Running, artefacts: Path
) -> None:
    with visit(browser, guarded.url) as visiting:
        page = visiting.page
        complains(page, "This server wants a key.", "key")
        key = page.get_by_label("Key of this server")
        expect(key).to_be_focused()
        page.screenshot(path=artefacts / "key.png", full_page=True)
        key.fill("something else")
        key.press("Enter")
        complains(page, "The server does not take this key.", "key")
        assert visiting.refused == [(401, "/v1/models")] * 2
        visiting.refused.clear()
        key.fill(KEY)
        key.press("Enter")
        says(page, "Ready.")
        expect(key).to_be_hidden()
        page.reload()
        says(page, "Ready.")
        assert page.evaluate("Object.keys(localStorage).length + document.cookie.length") == 0


def test_a_busy_server_says_when_to_try_again(browser: Browser, guarded: Running) -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    body = {"model": "nightingale", "input": LONG, "response_format": "pcm"}
    with ExitStack() as stack, visit(browser, guarded.url) as visiting:
        page = visiting.page
        page.get_by_label("Key of this server").fill(KEY)
        page.get_by_role("button", name="Use key").click()
        says(page, "Ready.")
        client = stack.enter_context(httpx.Client(headers=headers, timeout=SECONDS))
        stack.enter_context(client.stream("POST", f"{guarded.url}/v1/audio/speech", json=body))
        page.evaluate(
            """([headers, body]) => {
              fetch("v1/audio/speech", { method: "POST", headers, body: JSON.stringify(body) });
            }""",
            [{**headers, "Content-Type": "application/json"}, body],
        )
        until(lambda: guarded.health()["waiting"] == 1)
        page.get_by_role("button", name="Speak").click()
        complains(page, r"The server is busy\. Try again in \d+ s\.")
        assert visiting.refused[-1] == (429, "/v1/audio/speech")
        visiting.refused.clear()
    until(guarded.idle)


def test_a_broken_connection_is_told_and_keeps_what_came(
    browser: Browser, quick_checkpoint: Path, tmp_path: Path
) -> None:
    with serving(quick_checkpoint, tmp_path) as running, visit(browser, running.url) as visiting:
        page = visiting.page
        says(page, "Ready.")
        page.get_by_label("Text").fill(LONG)
        page.get_by_role("button", name="Speak").click()
        until(lambda: visiting.hears() > 0.01)
        running.process.kill()
        complains(page, r"The connection broke after (?!0\.0 )\S+ s of sound\.")
        expect(page.get_by_role("button", name="Download WAV")).to_be_enabled()
        page.get_by_role("button", name="Speak").click()
        complains(page, r"The server does not answer\. Is it still running\?")
        assert {fault.partition("net::")[0] for fault in visiting.faults} == {
            "Failed to load resource: "
        }
        visiting.faults.clear()


def test_a_phone_shows_all_of_it(browser: Browser, server: Running, artefacts: Path) -> None:
    with visit(browser, server.url, **PHONE) as visiting:
        page = visiting.page
        says(page, "Ready.")
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.screenshot(path=artefacts / f"phone-{scheme}.png", full_page=True)
            assert_accessible(page)
        assert page.evaluate("document.scrollingElement.scrollWidth") == 320
        controls = page.locator("button:visible, input:visible, select:visible, textarea:visible")
        assert controls.count() == 15
        for control in controls.all():
            box = control.bounding_box()
            assert box["height"] >= 44
            assert box["width"] >= 44
            assert 0 <= box["x"] <= box["x"] + box["width"] <= 320


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_the_interface_is_shown_as_a_page(
    browser: Browser, server: Running, artefacts: Path, options: dict[str, Any]
) -> None:
    with visit(browser, server.url, **options) as visiting:
        page = visiting.page
        page.goto(f"{server.url}/docs")
        expect(page.get_by_role("article")).to_have_count(10)
        speak = page.get_by_role("article").filter(has_text="POST /v1/audio/speech")
        expect(speak.get_by_role("row", name="response_format")).to_contain_text("mp3, opus")
        expect(speak.get_by_role("row", name="429")).to_be_visible()
        expect(speak).to_contain_text(f"curl -s {server.url}/v1/audio/speech -H ")
        speak.get_by_role("button", name="Try POST /v1/audio/speech").click()
        sound = speak.locator("audio")
        expect(sound).to_be_visible()
        page.wait_for_function("sound => sound.duration > 0.3", arg=sound.element_handle())
        live = page.get_by_role("article").filter(has_text="WS /v1/audio/speech/live")
        expect(live.get_by_role("row", name="cancel stops at once")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert_accessible(page)
        page.screenshot(path=artefacts / "docs.png")
