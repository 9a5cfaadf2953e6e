"""Requests as clients in use send them, which are not always as OpenAI's documents say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.sync.client import ClientConnection, connect

import nightingale
from nightingale.language_tags import language_code
from nightingale.server.context import Settings
from nightingale.server.speech import SpeechRequest
from nightingale.server.tolerance import KOKORO_LANGUAGES
from nightingale.server.voice_names import OPENAI_VOICES, own_name, read_aliases
from nightingale.voice_folder import VoiceFolder

from .command import PATIENCE
from .serving import Running, pcm, serving, until

pytestmark = pytest.mark.slow

SITE = "https://app.example"
OPTIONS = ("--alias", "Narrator=anna", "--alias", "alloy=Anna", "--alias", "lost=nobody")


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("voices")
    voice = nightingale.Voice.load(quick_checkpoint / "conds.pt").with_exaggeration(1.5)
    VoiceFolder(folder).save("Anna", voice)
    VoiceFolder(folder).save("Turbo", replace(voice, prompt="turbo"))
    with serving(quick_checkpoint, folder, *OPTIONS, "--allow-origin", SITE) as running:
        yield running


def said(tts: nightingale.TTS, text: str, **settings: Any) -> bytes:
    return pcm(np.concatenate([chunk.samples for chunk in tts.stream(text, **settings)]))


def test_null_is_what_was_not_given(server: Running, quick_tts: nightingale.TTS) -> None:
    schema = httpx.get(f"{server.url}/openapi.json", timeout=PATIENCE).json()
    body = schema["components"]["schemas"]["SpeechRequest"]
    assert body["required"] == ["input"]
    nulls = dict.fromkeys(set(body["properties"]) - {"input", "response_format"})
    assert len(nulls) > 10
    for name in nulls:
        assert {"type": "null"} in body["properties"][name]["anyOf"], name
    assert server.speech("Hi.", **nulls).content == said(quick_tts, "Hi.")
    refused = server.speech("Hi.", input=None)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "input")


def test_numbers_may_be_strings(server: Running) -> None:
    settings = {"seed": "7", "temperature": "0.5", "speed": " 1.25 ", "cfg_weight": "3e-1"}
    numbers = {"seed": 7, "temperature": 0.5, "speed": 1.25, "cfg_weight": 0.3}
    request = SpeechRequest.model_validate({"input": "Hi.", **settings})
    assert {name: getattr(request, name) for name in numbers} == numbers
    largest = SpeechRequest.model_validate({"input": "Hi.", "seed": str(2**64 - 1)})
    assert largest.seed == 2**64 - 1
    for wrong in (
        {"speed": "fast"}, {"seed": "1.5"}, {"seed": str(2**64)}, {"speed": "inf"}, {"speed": ""},
        {"speed": "1e999"}, {"seed": True}, {"temperature": "nan"},
    ):  # fmt: skip
        refused = server.speech("Hi.", **wrong)
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, next(iter(wrong)))


def test_any_model_is_the_one_there_is(server: Running) -> None:
    assert server.speech("Hi.", model="kokoro").status_code == 200
    assert server.speech("Hi.", model="m" * 201).status_code == 400


def test_other_models_are_not_found_where_that_is_asked_for(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    with serving(quick_checkpoint, tmp_path, "--strict-model", "--no-access-log") as server:
        refused = server.speech("Hi.", model="whisper-1")
        assert refused.status_code == 404
        error = refused.json()["error"]
        assert "there is no model 'whisper-1'" in error["message"]
        assert (error["param"], error["code"]) == ("model", "model_not_found")
        assert server.speech("Hi.", model="tts-1-hd", voice="nobody").status_code == 400
    assert not [line for line in server.log if "/v1/audio/speech" in line]


def test_voices_have_other_names(
    server: Running, quick_tts: nightingale.TTS, quick_checkpoint: Path
) -> None:
    anna = nightingale.Voice.load(quick_checkpoint / "conds.pt").with_exaggeration(1.5)
    default, other = said(quick_tts, "Hi."), said(quick_tts, "Hi.", voice=anna)
    assert default != other
    for name in ("ANNA", "NARRATOR", "Alloy"):
        assert server.speech("Hi.", voice=name).content == other, name
    for name in ("Default", "NOVA"):
        assert server.speech("Hi.", voice=name).content == default, name
    refused = server.speech("Hi.", voice="lost").json()["error"]
    assert refused["message"].startswith("there is no voice 'nobody' (alias 'lost'); there are: ")


def test_openais_names_are_spread_over_the_voices_of_the_embedded_model() -> None:
    embedded = nightingale.load().voices
    assert set(OPENAI_VOICES.values()) <= set(embedded)
    assert len(set(OPENAI_VOICES.values())) == 4
    page = (Path(__file__).parents[1] / "docs/reference/http.md").read_text("utf-8")
    listed = dict(re.findall(r"^\| `(\w+)` \| `([ab][fm]_\w+)` \|$", page, re.MULTILINE))
    assert listed == dict(OPENAI_VOICES)
    assert own_name("AF_Heart", embedded) == "af_heart"


@pytest.mark.parametrize("alias", ["narrator", "=Anna", "narrator=", "="])
def test_an_alias_has_a_name_and_a_voice(alias: str) -> None:
    with pytest.raises(ValueError, match="an alias is written NAME=VOICE, not"):
        Settings(alias=[alias])
    assert read_aliases("A = b=c") == {"a": "b=c"}


@pytest.mark.parametrize(
    ("given", "language"),
    [({"language": "es-ES"}, "es"), ({"lang_code": "fr-fr"}, "fr"), ({"lang_code": "p"}, "pt"),
     ({"lang_code": "it", "language": "es"}, "es"), ({"lang_code": "it", "language": None}, "it"),
     ({"lang_code": None}, "en")],
)  # fmt: skip
def test_languages_have_other_names(given: dict[str, Any], language: str) -> None:
    request = SpeechRequest.model_validate({"input": "Hola.", **given})
    assert language_code(request.language) == language


def test_languages_of_other_names_are_spoken(server: Running, quick_tts: nightingale.TTS) -> None:
    answer = server.speech("Hi.", lang_code="e")
    assert answer.headers["nightingale-language"] == "es"
    assert answer.content == said(quick_tts, "Hi.", language="es")
    assert {language_code(tag) for tag in KOKORO_LANGUAGES.values()} <= set(quick_tts.languages)


@pytest.mark.parametrize(
    ("body", "phrase"),
    [
        ({"voice": "Turbo"}, "bake its recording again with this model"),
        ({"language": "tlh"}, "unknown language 'tlh'; this model speaks"),
        ({"input": " "}, "there is no text to speak"),
        ({"input": "🙂"}, "cannot speak 🙂"),
        ({"input": "<speak>Hi.<break time='soon'/></speak>"}, "is no pause: write 500ms or 1.5s"),
        ({"input": "<speak>Hi."}, "SSML"),
        ({"ssml": True, "markdown": True}, "a text is written in one way"),
        ({"cfg_weight": -1}, "greater than or equal to 0"),
    ],
)
def test_errors_speak_neither_of_python_nor_of_the_command_line(
    server: Running, body: dict[str, Any], phrase: str
) -> None:
    answer = server.speech(**({"text": body.pop("input", "Hi.")} | body))
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert phrase in message
    assert not re.search(r"tts\.|\w\(|--\w|nightingale \w|\w=(?!'soon')", message), message


@pytest.mark.parametrize("content_type", [None, "text/plain", "application/x-www-form-urlencoded"])
def test_json_needs_no_content_type(server: Running, content_type: str | None) -> None:
    headers = {} if content_type is None else {"content-type": content_type}
    body = json.dumps({"input": "Hi.", "response_format": "ogg"}).encode()
    url = f"{server.url}/v1/audio/speech"
    answer = httpx.post(url, content=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "audio/ogg; codecs=opus"
    assert answer.content[:4] == b"OggS"
    assert httpx.post(url, content=b"input=Hi.", headers=headers, timeout=PATIENCE).json() == {
        "error": {"message": "this is not JSON", "type": "invalid_request_error", "param": None,
                  "code": None}
    }  # fmt: skip


def test_voices_are_listed_under_both_names(server: Running) -> None:
    listed = httpx.get(f"{server.url}/v1/audio/voices", timeout=PATIENCE).json()
    assert listed["voices"] == listed["data"]
    assert [(voice["id"], voice["name"]) for voice in listed["voices"]] == [
        ("default", "default"),
        ("Anna", "Anna"),
        ("Turbo", "Turbo"),
    ]


def test_pages_of_an_allowed_site_may_use_the_server(server: Running) -> None:
    url = f"{server.url}/v1/audio/speech"
    asked = {"origin": SITE, "access-control-request-method": "POST",
             "access-control-request-headers": "authorization,content-type"}  # fmt: skip
    allowed = httpx.options(url, headers=asked, timeout=PATIENCE)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == SITE
    assert "authorization" in allowed.headers["access-control-allow-headers"]
    answer = httpx.post(url, json={"input": "Hi."}, headers={"origin": SITE}, timeout=PATIENCE)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == SITE
    assert "nightingale-language" in answer.headers["access-control-expose-headers"].lower()
    refusal = httpx.post(url, json={"input": ""}, headers={"origin": SITE}, timeout=PATIENCE)
    assert (refusal.status_code, refusal.headers["access-control-allow-origin"]) == (400, SITE)
    with connect(live(server), origin=SITE, open_timeout=PATIENCE) as socket:
        assert exchanged(socket, {"type": "begin"})["type"] == "begin"
    other = {"origin": "https://evil.example"}
    refused = httpx.post(url, json={"input": "Hi."}, headers=other, timeout=PATIENCE)
    assert refused.status_code == 403
    assert "access-control-allow-origin" not in refused.headers
    assert httpx.options(url, headers=asked | other, timeout=PATIENCE).status_code == 400


@pytest.mark.parametrize("origin", ["example.com", "https://example.com/", "null", ""])
def test_an_origin_has_a_scheme_and_no_path(origin: str) -> None:
    with pytest.raises(ValueError, match=re.escape("an origin is written like https://")):
        Settings(allowed_origins=(origin,))


def live(server: Running) -> str:
    return server.url.replace("http", "ws") + "/v1/audio/speech/live"


def exchanged(socket: ClientConnection, message: dict[str, Any]) -> dict[str, Any]:
    """What a message is answered with."""
    socket.send(json.dumps(message))
    return json.loads(socket.recv(timeout=PATIENCE))


def test_begin_is_answered_at_once(server: Running) -> None:
    with connect(live(server), open_timeout=PATIENCE) as socket:
        begin = {"type": "begin", "response_format": "opus", "seed": "3", "voice": None}
        expected = {"type": "begin", "media_type": "audio/ogg; codecs=opus"}
        assert exchanged(socket, begin) == expected
        for wrong, param in (
            ({"voice": "nobody"}, "voice"),
            ({"language": "tlh"}, "language"),
            ({"speed": "x"}, "speed"),
        ):
            told = exchanged(socket, {"type": "begin", **wrong})
            assert (told["type"], told["error"]["param"]) == ("error", param)
            # What follows it is not said, and the next text is.
            for message in ({"type": "text", "text": "Who says this? "}, {"type": "end"}):
                socket.send(json.dumps(message))
        assert exchanged(socket, begin) == expected
        for message in ({"type": "text", "text": "Hi."}, {"type": "end"}):
            socket.send(json.dumps(message))
        types = []
        while not types or types[-1] != "done":
            message = socket.recv(timeout=PATIENCE)
            types.append("sound" if isinstance(message, bytes) else json.loads(message)["type"])
        assert "begin" not in types
        assert {"sentence", "sound"} <= set(types)


def test_a_begin_is_answered_after_what_came_before_it(server: Running) -> None:
    with connect(live(server), open_timeout=PATIENCE) as socket:
        for message in (
            {"type": "text", "text": "Hi."}, {"type": "end"}, {"type": "begin"}, {"type": "end"},
        ):  # fmt: skip
            socket.send(json.dumps(message))
        types = []
        while types.count("done") < 2:
            message = socket.recv(timeout=PATIENCE)
            types.append("sound" if isinstance(message, bytes) else json.loads(message)["type"])
    assert [kind for kind in types if kind in ("begin", "done")] == ["begin", "done"] * 2
    assert types[types.index("done") :] == ["done", "begin", "done"]


def test_answers_are_logged(server: Running) -> None:
    server.log.clear()
    answer = server.speech("A secret text.", voice="Anna")
    httpx.get(f"{server.url}/no%0Asuch", timeout=PATIENCE)
    with connect(live(server), open_timeout=PATIENCE) as socket:
        exchanged(socket, {"type": "begin"})
    size = len(answer.content)
    lines = (
        rf"^nightingale: 127\.0\.0\.1 POST /v1/audio/speech 200 \d+\.\d\d\d s {size} bytes$",
        " GET /no%0Asuch 404 ",
        " WS /v1/audio/speech/live 101 ",
    )
    until(lambda: all(re.search(line, "".join(server.log), re.MULTILINE) for line in lines))
    assert "secret" not in "".join(server.log)
