"""The rest of the server's page in Chromium: refusals, keys, copies, conversion and documents."""

from __future__ import annotations

import re
import subprocess
import sys
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
from playwright.sync_api import Browser, Route, expect

from nightingale.options import LARGEST_SEED

from .browser import CHROMIUM, Visit, visit
from .command import PATIENCE as SECONDS
from .page_visits import (
    LONG,
    NATIVE,
    PHONE,
    SHORT,
    artefacts,
    assert_accessible,
    browser,
    complains,
    says,
    server,
    shown,
    text_field,
    upload,
    visiting,
)
from .recordings import speech, wav_bytes
from .serving import Running, serving, until

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
    pytest.mark.slow,
    pytest.mark.nightly,
]

KEY = "a key of eight or more"


@pytest.fixture(scope="module")
def guarded(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with a key that takes one request and lets one wait."""
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "key").write_text(KEY)
    options = ("--key-file", folder / "key", "--max-concurrent", "1", "--max-queue", "1")
    with serving(quick_checkpoint, folder / "voices", *options) as running:
        yield running


def test_tells_what_cannot_be_spoken(visiting: Visit) -> None:
    page = visiting.page
    text_field(page).fill(f"{SHORT} 🙂")
    page.get_by_role("button", name="Speak").click()
    says(page, r"Spoken: .* Left out, as the model cannot speak it: 🙂")
    text_field(page).fill("🙂")
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
        text = text_field(page)
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


def test_the_language_can_be_detected(visiting: Visit) -> None:
    page = visiting.page
    languages = page.get_by_label("Language")
    assert languages.input_value() == "en"
    assert languages.locator("option").first.inner_text() == "Detect automatically"
    languages.select_option("Detect automatically")
    text = text_field(page)
    expect(text).to_have_attribute("lang", "")
    text.fill("Le chat dort sur le tapis.")
    with page.expect_response("**/v1/audio/speech") as answered:
        page.get_by_role("button", name="Speak").click()
    assert answered.value.request.post_data_json["language"] == "auto"
    assert answered.value.headers["nightingale-language"] == "fr"
    says(page, "Spoken: .*")
    languages.select_option("French")
    expect(text).to_have_attribute("lang", "fr")


def test_what_is_copied_asks_for_the_same_speech(
    browser: Browser, server: Running, tmp_path: Path
) -> None:
    permissions = ["clipboard-read", "clipboard-write"]
    with visit(browser, server.url, permissions=permissions) as visiting:
        page = visiting.page
        says(page, "Ready.")
        text_field(page).fill('It\'s "so" \\ $HOME 🙂\nTwo.')
        page.get_by_label("Seed").fill(str(LARGEST_SEED))
        page.get_by_label("Speed").fill("1.5")
        copied = []
        for name in ("curl", "Python"):
            page.get_by_role("button", name=f"Copy as {name}").click()
            expect(page.locator("#copy-status")).to_have_text(re.compile(f"{name} .* copied"))
            copied.append(page.evaluate("navigator.clipboard.readText()"))
        text_field(page).fill(" ")
        page.get_by_role("button", name="Copy as curl").click()
        complains(page, "There is no text to speak.")
    found = []
    for command, text in zip((["sh", "-c"], [sys.executable, "-c"]), copied, strict=True):
        subprocess.run([*command, text], cwd=tmp_path, check=True, timeout=SECONDS)
        found.append((tmp_path / "speech.mp3").read_bytes())
        (tmp_path / "speech.mp3").unlink()
    settings = {"voice": "default", "language": "en", "speed": 1.5, "seed": LARGEST_SEED}
    text = 'It\'s "so" \\ $HOME 🙂\nTwo.'
    expected = server.speech(text, response_format="mp3", cfg_weight=0.5, **settings).content
    assert found == [expected, expected]


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
    text_field(page).fill(LONG)
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
    text_field(page).fill(LONG)
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
    for _ in range(21):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.id"))
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"
        if reached[-1] == "text":
            page.keyboard.press("Control+A")
            page.keyboard.type(LONG[:80])
    link = ""
    assert reached[:5] == [link, "text", "language", "voice", "speak"]
    assert reached[5:11] == ["reset", "speed", "temperature", "cfg_weight", "exaggeration", "seed"]
    assert reached[11:15] == ["voice-name", "recording", "recording-record", "add-voice"]
    assert reached[15:18] == ["source", "source-record", "convert"]
    assert reached[18:] == ["copy-curl", "copy-python", link]
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
    text_field(page).fill(LONG)
    page.get_by_role("button", name="Speak").click()
    until(lambda: visiting.hears() > 0.01)
    page.evaluate("nightingale.context.suspend()")
    says(page, "The browser holds the sound back: tap the page or press a key to hear it.")
    page.keyboard.press("Shift")
    says(page, "Speaking.")
    page.keyboard.press("Escape")
    says(page, "Cancelled; .*")


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
    assert [voice["id"] for voice in voices] == ["default", *NATIVE]
    facts = [(voice["language"], voice["sex"]) for voice in voices]
    assert facts == [(None, None), ("en", "female"), ("en", "male"), ("es", "female")]


def test_a_microphone_that_is_refused_is_told(browser: Browser, server: Running) -> None:
    refuse = """() => {
      navigator.mediaDevices.getUserMedia = () => {
        throw new DOMException("no", "NotAllowedError");
      };
    }"""
    with visit(browser, server.url) as visiting:
        page = visiting.page
        says(page, "Ready.")
        page.evaluate(refuse)
        page.locator("#recording-record").click()
        complains(page, "The browser does not let this page use the microphone.", "upload")
        expect(page.locator("#recording-record")).to_have_text("Record")


def test_a_recording_is_said_in_the_chosen_voice(
    visiting: Visit, server: Running, tmp_path: Path
) -> None:
    page = visiting.page
    recording = wav_bytes(speech(2, 24000), 24000)
    file: Any = {"name": "My talk.wav", "mimeType": "audio/wav", "buffer": recording}
    page.get_by_label("Voice", exact=True).select_option("bm_george")
    page.get_by_label("Speech to convert").set_input_files(file)
    page.get_by_role("button", name="Convert", exact=True).click()
    told = says(page, r"Spoken: (\S+) s of speech, .*")
    assert float(told[1]) == pytest.approx(2, abs=0.1)
    expect(page.locator("#transcript")).to_be_hidden()
    with page.expect_download() as begun:
        page.get_by_role("button", name="Download WAV").click()
    assert begun.value.suggested_filename == "my-talk.wav"
    begun.value.save_as(tmp_path / "converted.wav")
    samples, _ = soundfile.read(tmp_path / "converted.wav", dtype="int16")
    form = {"voice": "bm_george", "response_format": "pcm"}
    expected = httpx.post(
        f"{server.url}/v1/audio/conversions",
        data=form,
        files={"file": recording},
        timeout=SECONDS,
    )
    np.testing.assert_array_equal(samples, np.frombuffer(expected.content, "<i2"))


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
    text_field(page).fill(SHORT)
    page.get_by_role("button", name="Speak").click()
    complains(page, ".*'Ben'.*")
    assert [path for status, path in visiting.refused] == ["/v1/audio/speech"]
    visiting.refused.clear()
    expect(text_field(page)).to_have_value(SHORT)
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
        expect(text_field(page)).to_be_hidden()
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
        expect(text_field(page)).to_be_visible()
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
        text_field(page).fill(LONG)
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


@pytest.mark.parametrize("options", [{}, PHONE], ids=["desk", "phone"])
def test_the_interface_is_shown_as_a_page(
    browser: Browser, server: Running, artefacts: Path, options: dict[str, Any]
) -> None:
    with visit(browser, server.url, **options) as visiting:
        page = visiting.page
        page.get_by_role("link", name="API docs").first.click()
        expect(page.get_by_role("article")).to_have_count(11)
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
        # Not innerWidth, which grows with what overflows on a phone.
        width = options.get("viewport", {"width": 1280})["width"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            assert_accessible(page)
        page.screenshot(path=artefacts / f"docs-{width}.png")
