"""The server as programs written for OpenAI use it."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import openai
import pytest

import nightingale
from nightingale.server.encoding import RESPONSE_FORMATS

from .recordings import speech as recording
from .recordings import wav_bytes
from .serving import PATIENCE, Running, pcm, serving, until

pytestmark = pytest.mark.slow

TEXT = "Hello there. How are you?"
# Samples at 24 kHz that a codec may add, at the start and to fill its last frame.
PADDING = {"mp3": 2400, "aac": 3072, "opus": 0, "ogg": 0, "flac": 0, "wav": 0, "pcm": 0}


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(quick_checkpoint, tmp_path_factory.mktemp("voices")) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[openai.OpenAI]:
    url = f"{server.url}/v1"
    with openai.OpenAI(base_url=url, api_key="not needed", max_retries=0) as client:
        yield client


@pytest.fixture(scope="module")
def said(quick_tts: nightingale.TTS) -> nightingale.Audio:
    """What the model says directly."""
    chunks = list(quick_tts.stream(TEXT, seed=3))
    parts = ([getattr(chunk, part) for chunk in chunks] for part in ("samples", "tokens"))
    words = [word for chunk in chunks for word in chunk.words]
    return nightingale.Audio(*map(np.concatenate, parts), {}, words=words)


def decoded(data: bytes, response_format: str) -> np.ndarray:
    """What ffmpeg hears in it, int16 at 24 kHz, from a pipe."""
    if not (ffmpeg := shutil.which("ffmpeg")):
        pytest.skip("ffmpeg is not installed")
    raw = ["-f", "s16le", "-ar", "24000", "-ac", "1"]
    command = [ffmpeg, "-v", "error", *(raw if response_format == "pcm" else []), "-i", "-"]
    done = subprocess.run([*command, *raw, "-"], input=data, capture_output=True, check=True)
    assert done.stderr == b""
    return np.frombuffer(done.stdout, "<i2")


@pytest.mark.parametrize("response_format", RESPONSE_FORMATS)
def test_openais_client_speaks_in_every_format(
    client: openai.OpenAI, said: nightingale.Audio, response_format: str
) -> None:
    settings = {"model": "tts-1", "voice": "alloy", "input": TEXT, "extra_body": {"seed": 3}}
    answer = client.audio.speech.create(**settings, response_format=response_format)
    with client.audio.speech.with_streaming_response.create(
        **settings, response_format=response_format
    ) as streamed:
        parts = list(streamed.iter_bytes())
    assert answer.response.headers["content-type"] == RESPONSE_FORMATS[response_format]
    assert b"".join(parts) == answer.content
    heard = decoded(answer.content, response_format)
    assert 0 <= len(heard) - len(said.samples) <= PADDING[response_format]
    if not PADDING[response_format] and response_format not in ("opus", "ogg"):
        assert heard.tobytes() == pcm(said.samples)


def test_openais_client_reads_the_events(client: openai.OpenAI, said: nightingale.Audio) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="nightingale",
        voice="default",
        input=TEXT,
        response_format="pcm",
        stream_format="sse",
        extra_body={"seed": 3},
    ) as answer:
        events = [json.loads(line[6:]) for line in answer.iter_lines() if line]
    *deltas, done = events
    assert {event["type"] for event in deltas} == {"speech.audio.delta"}
    assert b"".join(base64.b64decode(event["audio"]) for event in deltas) == pcm(said.samples)
    assert done["type"] == "speech.audio.done"
    usage = done["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["output_tokens"] == len(said.tokens)
    words = [word for event in events for word in event.get("words", [])]
    assert words == [list(word) for word in said.words]


def test_json_has_the_sound_and_its_words(server: Running, said: nightingale.Audio) -> None:
    request = {"text": TEXT, "seed": 3, "stream_format": "json"}
    answer = server.speech(**request)
    assert answer.headers["content-type"] == "application/json"
    told = answer.json()
    assert told["media_type"] == RESPONSE_FORMATS["pcm"]
    assert base64.b64decode(told["audio"]) == pcm(said.samples)
    assert told["words"] == [list(word) for word in said.words]
    assert told["seconds"] == said.duration
    assert told["unspoken"] == []
    assert told["usage"]["output_tokens"] == len(said.tokens)


def test_what_cannot_be_spoken_is_told(server: Running) -> None:
    answer = server.speech("Hello 🙂 there.")
    assert answer.headers["nightingale-unspoken"] == "U+1F642"
    assert "nightingale-unspoken" not in server.speech("Hello there.").headers
    for text in ("🙂 👍🏽", "...", "→"):
        refused = server.speech(text)
        assert refused.status_code == 400
        assert "speak" in refused.json()["error"]["message"]


def test_the_first_bytes_leave_before_the_speech_is_made(server: Running) -> None:
    # So long that it is not all made by the time that a slow client asks how far it is.
    body = {"model": "nightingale", "input": 20 * TEXT, "response_format": "pcm"}
    with httpx.stream("POST", f"{server.url}/v1/audio/speech", json=body, timeout=PATIENCE) as said:
        parts = said.iter_raw()
        first = next(parts)
        assert server.health()["running"] == 1
        assert 0 < len(first) < 48000
        assert next(parts)
    assert "content-length" not in said.headers
    until(server.idle)


def test_the_same_request_gives_the_same_bytes(server: Running) -> None:
    digests = {
        hashlib.sha256(server.speech("Hi.", response_format=kind, seed=9).content).hexdigest()
        for kind in ("opus", "opus", "opus")
    }
    assert len(digests) == 1
    other = server.speech("Hi.", response_format="opus", seed=10).content
    assert hashlib.sha256(other).hexdigest() not in digests


def test_settings_reach_the_model(server: Running, quick_tts: nightingale.TTS) -> None:
    settings = {
        "language": "fr", "seed": 4, "temperature": 0.5, "cfg_weight": 0.3, "exaggeration": 0.9,
        "speed": 1.25,
    }  # fmt: skip
    answer = server.speech("Oui.", instructions="Whisper.", **settings)
    chunks = quick_tts.stream("Oui.", **settings)
    assert answer.content == pcm(np.concatenate([chunk.samples for chunk in chunks]))


def test_the_page_is_told_the_options_and_their_ranges(server: Running) -> None:
    found = httpx.get(f"{server.url}/page/options.json", timeout=PATIENCE).json()
    names = ["speed", "temperature", "cfg_weight", "exaggeration", "seed"]
    assert [control["name"] for control in found] == names
    schema = httpx.get(f"{server.url}/openapi.json", timeout=PATIENCE).json()
    body = schema["components"]["schemas"]["SpeechRequest"]["properties"]
    speed, _, cfg_weight, exaggeration, seed = found
    assert (int(seed["minimum"]), int(seed["maximum"])) == (0, 2**64 - 1)
    number = body["seed"]["anyOf"][0]
    assert (number["minimum"], number["maximum"]) == (0, float(2**64 - 1))
    assert (speed["minimum"], speed["maximum"], speed["default"]) == (0.25, 4.0, 1.0)
    assert cfg_weight["default"] == 0.5  # the model's own
    assert (exaggeration["default"], exaggeration["unset"]) == (None, "the voice's own")
    for control in found:
        assert body[control["name"]]["description"].lower().startswith(control["help"].lower())


def test_the_largest_seed_is_taken_and_the_next_one_is_not(server: Running) -> None:
    assert server.speech("Hi.", seed=2**64 - 1).status_code == 200
    assert server.speech("Hi.", seed=2**64).status_code == 400


def test_a_path_on_the_server_is_no_voice(server: Running, quick_checkpoint: Path) -> None:
    file = quick_checkpoint / "conds.pt"
    assert file.is_file()
    for voice in (str(file), {"id": str(file)}, f"../{file.name}"):
        answer = server.speech("Hi.", voice=voice)
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "voice_not_found")


def test_models_and_health(
    client: openai.OpenAI, server: Running, quick_tts: nightingale.TTS
) -> None:
    (model,) = client.models.list().data
    assert (model.id, model.owned_by) == ("nightingale", "nightingale")
    assert model.languages == quick_tts.languages
    assert model.max_input_characters == 10_000
    assert client.models.retrieve("tts-1").id == "nightingale"
    with pytest.raises(openai.NotFoundError, match="there is no model 'whisper-1'"):
        client.models.retrieve("whisper-1")
    health = server.health()
    assert health.pop("version")
    assert health == {
        "status": "ok", "model": "nightingale", "loaded": True, "running": 0, "waiting": 0,
        "queue": 32,
    }  # fmt: skip


def test_a_voice_is_uploaded_used_and_deleted(
    client: openai.OpenAI, server: Running, quick_tts: nightingale.TTS
) -> None:
    data = wav_bytes(recording(6, 24000), 24000)
    sample = {"audio_sample": ("anna.wav", data), "consent": "given"}
    voice = client.audio.voices.create(name="Anna", **sample)
    assert (voice.id, voice.name) == ("Anna", "Anna")
    listed = httpx.get(f"{server.url}/v1/audio/voices", timeout=PATIENCE).json()["data"]
    assert [(found["id"], found["source"]) for found in listed] == [
        ("default", "model"),
        ("Anna", "folder"),
    ]
    baked = quick_tts.bake_voice(io.BytesIO(data))
    expected = pcm(
        np.concatenate([chunk.samples for chunk in quick_tts.stream("Hi.", voice=baked)])
    )
    assert server.speech("Hi.", voice="Anna").content == expected
    assert server.speech("Hi.", voice={"id": "anna"}).content == expected
    assert server.speech("Hi.", voice="default").content != expected

    with pytest.raises(openai.ConflictError, match="there is a voice 'ANNA' already"):
        client.audio.voices.create(name="ANNA", **sample)
    assert client.audio.voices.delete("Anna").deleted is True
    with pytest.raises(openai.NotFoundError):
        client.audio.voices.delete("Anna")
    with pytest.raises(openai.PermissionDeniedError, match="a voice of the model"):
        client.audio.voices.delete("default")
    assert server.speech("Hi.", voice="Anna").status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "param", "message"),
    [
        ({"input": ""}, 400, "input", "at least 1 character"),
        ({"input": " \n "}, 400, None, "there is no text to speak"),
        ({"input": "a" * 10_001}, 400, "input", "10001 characters; 10000 are the most"),
        ({"model": 5}, 400, "model", "valid string"),
        ({"voice": "nobody"}, 400, "voice", "there is no voice 'nobody'; there are: default"),
        ({"voice": "../conds"}, 400, "voice", "there is no voice '../conds'"),
        ({"response_format": "midi"}, 400, "response_format", "'mp3', 'opus'"),
        ({"speed": 5}, 400, "speed", "less than or equal to 4"),
        ({"language": "tlh"}, 400, None, "'tlh'"),
        ({"seed": -1}, 400, "seed", "greater than or equal to 0"),
        ({"temperature": "hot"}, 400, "temperature", "valid number"),
    ],
)
def test_a_bad_request_is_told_what_is_wrong(
    server: Running, body: dict, status: int, param: str | None, message: str
) -> None:
    answer = server.speech(**({"text": body.pop("input", "Hello.")} | body))
    assert answer.status_code == status
    error = answer.json()["error"]
    assert message in error["message"]
    assert error["param"] == param
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("../Eve", wav_bytes(recording(2, 24000), 24000), "cannot name a voice"),
        ("Eve", b"", "WAV, FLAC, OGG or MP3"),
        ("Eve", b"this is no sound", "WAV, FLAC, OGG or MP3"),
        ("Eve", wav_bytes(recording(0.2, 24000), 24000), "1 s"),
        ("Eve", wav_bytes(np.full((48000, 1), np.nan, np.float32), 24000, subtype="FLOAT"), ""),
    ],
)
def test_a_bad_recording_makes_no_voice(
    server: Running, name: str, data: bytes, message: str
) -> None:
    answer = httpx.post(
        f"{server.url}/v1/audio/voices",
        data={"name": name},
        files={"audio_sample": ("sample.wav", data)},
        timeout=PATIENCE,
    )
    assert answer.status_code == 400
    assert re.search(message, answer.json()["error"]["message"])
    assert len(httpx.get(f"{server.url}/v1/audio/voices", timeout=PATIENCE).json()["data"]) == 1


def test_a_client_that_hangs_up_ends_the_work(server: Running) -> None:
    long = "This is one sentence of many. " * 50
    body = {"model": "nightingale", "input": long, "response_format": "pcm"}
    with httpx.stream("POST", f"{server.url}/v1/audio/speech", json=body, timeout=PATIENCE) as said:
        parts = said.iter_raw()
        next(parts)
        assert server.health()["running"] == 1
    until(server.idle)
    before = metric(server, "nightingale_speech_tokens_total")
    time.sleep(0.3)
    assert metric(server, "nightingale_speech_tokens_total") == before
    assert metric(server, "nightingale_cancelled_total") >= 1


def test_requests_take_turns_and_each_is_answered_as_if_alone(
    server: Running, quick_tts: nightingale.TTS
) -> None:
    import concurrent.futures

    texts = ["Hi.", "No!", "Oh?"]
    with concurrent.futures.ThreadPoolExecutor() as pool:
        answers = list(pool.map(server.speech, texts))
    for text, answer in zip(texts, answers, strict=True):
        expected = np.concatenate([chunk.samples for chunk in quick_tts.stream(text)])
        assert answer.content == pcm(expected)


def test_metrics_count_what_was_done(server: Running) -> None:
    names = ("nightingale_speech_seconds_total", "nightingale_first_sound_seconds_count")
    seconds, firsts = (metric(server, name) for name in names)
    answer = server.speech("Count me.")
    assert metric(server, names[0]) - seconds == pytest.approx(len(answer.content) / 48000)
    assert metric(server, names[1]) - firsts == 1
    assert metric(server, "nightingale_loaded") == 1


def test_the_schema_names_every_route(server: Running) -> None:
    schema = httpx.get(f"{server.url}/openapi.json", timeout=PATIENCE).json()
    assert set(schema["paths"]) == {
        "/v1/audio/speech", "/v1/audio/conversions", "/v1/audio/voices", "/v1/audio/voices/{id}",
        "/v1/audio/models", "/v1/models", "/v1/models/{id}", "/health", "/metrics",
    }  # fmt: skip
    assert schema["info"]["title"] == "Nightingale"


def metric(server: Running, name: str) -> float:
    text = httpx.get(f"{server.url}/metrics", timeout=PATIENCE).text
    return float(re.search(rf"^{name} (\S+)$", text, re.MULTILINE)[1])
