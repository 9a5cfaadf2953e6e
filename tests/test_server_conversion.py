"""POST /v1/audio/conversions: recordings in, sound in another voice out."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import nightingale

pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")

from .recordings import speech, wav_bytes
from .serving import PATIENCE, Running, pcm, serving, until

SHORT = wav_bytes(speech(1.1, 22050, 2), 22050)
MOST_SECONDS = 100


@pytest.fixture(scope="module")
def server(
    quick_checkpoint: Path, quick_tts: nightingale.TTS, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Running]:
    voices = tmp_path_factory.mktemp("voices")
    quick_tts.bake_voice(speech(3, 24000), 24000).save(voices / "Anna.safetensors")
    limits = ["--max-recording", str(MOST_SECONDS), "--max-upload", "6000000"]
    with serving(quick_checkpoint, voices, *limits, "--strict-model") as running:
        yield running


def post(server: Running, recording: bytes | None, **fields: Any) -> httpx.Response:
    files = {} if recording is None else {"file": ("speech.wav", recording)}
    url = f"{server.url}/v1/audio/conversions"
    return httpx.post(url, files=files, data=fields, timeout=PATIENCE, verify=False)


def counts(server: Running) -> dict[str, float]:
    text = httpx.get(f"{server.url}/metrics", timeout=PATIENCE, verify=False).text
    rows = (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in rows}


def test_the_sound_is_that_of_a_stream(server: Running, quick_tts: nightingale.TTS) -> None:
    before = counts(server)
    answer = post(server, SHORT, voice="Anna", seed=5, speed=1.5, response_format="pcm")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "audio/pcm; rate=24000; channels=1"
    assert answer.headers["cache-control"] == "no-store"
    assert "nightingale-language" not in answer.headers
    voice = quick_tts.bake_voice(speech(3, 24000), 24000)
    samples = speech(1.1, 22050, 2)
    chunks = quick_tts.convert_stream(
        (samples * 2**15).round().clip(-(2**15), 2**15 - 1).astype(np.int16),
        sample_rate=22050,
        voice=voice,
        seed=5,
        speed=1.5,
    )
    assert answer.content == pcm(np.concatenate([chunk.samples for chunk in chunks]))
    after = counts(server)
    made = after["nightingale_speech_seconds_total"] - before["nightingale_speech_seconds_total"]
    assert made == pytest.approx(len(answer.content) / 2 / 24000)
    key = 'nightingale_requests_total{route="/v1/audio/conversions",status="200"}'
    assert after[key] == before.get(key, 0) + 1


def test_formats_are_those_of_speech(server: Running) -> None:
    assert post(server, SHORT).headers["content-type"] == "audio/mpeg"
    answer = post(server, SHORT, response_format="pcm", stream_format="sse")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data:")]
    assert events[-1]["type"] == "speech.audio.done"
    assert events[-1]["usage"]["output_tokens"] == 28  # 110 frames, four a token
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert len(sound) == 2 * 960 * 28


@pytest.mark.parametrize(
    ("recording", "fields", "status", "param", "message"),
    [
        (None, {}, 400, "file", "file: Field required"),
        (b"This is no sound.", {}, 400, "file", "the recording is damaged or not audio"),
        (wav_bytes(speech(0.1, 16000), 16000), {}, 400, "file", "is 0.100 s long"),
        (wav_bytes(0 * speech(1, 16000), 16000), {}, 400, "file", "the recording is silent"),
        (
            wav_bytes(speech(MOST_SECONDS + 1, 8000), 8000),
            {},
            400,
            "file",
            "the recording is longer than 100 s, the most that is converted",
        ),
        (bytes(7_000_000), {}, 413, None, "larger than"),
        (SHORT, {"voice": "nobody"}, 400, "voice", "there is no voice 'nobody'"),
        (SHORT, {"voice": "../Anna"}, 400, "voice", "there is no voice"),
        (SHORT, {"seed": "-1"}, 400, "seed", "greater than or equal to 0"),
        (SHORT, {"speed": "nan"}, 400, "speed", "speed"),
        (SHORT, {"response_format": "exe"}, 400, "response_format", "response_format"),
        (SHORT, {"model": "another"}, 404, "model", "there is no model 'another'"),
    ],
)
def test_what_is_wrong_is_told_in_openais_shape(
    server: Running,
    recording: bytes | None,
    fields: dict[str, str],
    status: int,
    param: str | None,
    message: str,
) -> None:
    answer = post(server, recording, **fields)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["param"] == param
    assert message in error["message"]
    assert "/" not in error["message"].replace("../Anna", "")


def test_a_client_that_leaves_ends_the_work(server: Running) -> None:
    before = counts(server)["nightingale_cancelled_total"]
    long = wav_bytes(speech(MOST_SECONDS, 8000), 8000)
    with httpx.stream(
        "POST",
        f"{server.url}/v1/audio/conversions",
        files={"file": ("long.wav", long)},
        data={"response_format": "pcm"},
        timeout=PATIENCE,
        verify=False,
    ) as answer:
        assert answer.status_code == 200
        sound = answer.iter_bytes()  # dropping it would close the connection
        assert next(sound)
        assert server.health()["running"] == 1
    until(server.idle)
    assert counts(server)["nightingale_cancelled_total"] == before + 1


def test_the_schema_has_the_options_of_a_conversion(server: Running) -> None:
    schema = httpx.get(f"{server.url}/openapi.json", timeout=PATIENCE, verify=False).json()
    content = schema["paths"]["/v1/audio/conversions"]["post"]["requestBody"]["content"]
    name = content["multipart/form-data"]["schema"]["$ref"].split("/")[-1]
    properties = schema["components"]["schemas"][name]["properties"]
    common = {"file", "model", "response_format", "stream_format"}
    assert set(properties) == {"voice", "seed", "speed"} | common
