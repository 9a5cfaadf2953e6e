"""Packages that people use with OpenAI's speech interface, and requests as other programs send
them, against a real server."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import soundfile
from websockets.sync.client import connect

import nightingale
from nightingale.voice_folder import VoiceFolder

from .command import run
from .serving import PATIENCE, Running, pcm, serving

pytestmark = pytest.mark.slow

TEXT = "Hi."
SPANISH = "ef_dora"
ROOT = Path(__file__).parents[1]
CLIENTS = ROOT / "examples" / "python" / "clients"
EXAMPLES = {  # the package that each needs
    "kokoro_client": "httpx",
    "livekit_client": "livekit.plugins.openai",
    "mcp_client": "mcp",
    "openai_client": "openai",
    "pipecat_client": "pipecat",
    "wyoming_client": "wyoming",
}


@pytest.fixture(scope="module")
def server(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("voices")
    VoiceFolder(folder).save(SPANISH, nightingale.Voice.load(quick_checkpoint / "conds.pt"))
    wyoming = ("--wyoming", "127.0.0.1:0") if find_spec("wyoming") else ()
    options = ("--alias", f"Dora={SPANISH}", *wyoming)
    with serving(quick_checkpoint, folder, *options) as running:
        yield running


@pytest.fixture(scope="module")
def said(quick_tts: nightingale.TTS) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in quick_tts.stream(TEXT)])


def test_open_webui(server: Running) -> None:
    """What its router of audio sends and reads."""
    listed = httpx.get(f"{server.url}/v1/audio/models", timeout=PATIENCE).json()
    assert [model["id"] for model in listed["models"]] == ["nightingale"]
    listed = httpx.get(f"{server.url}/v1/audio/voices", timeout=PATIENCE).json()
    named = {voice["id"]: voice["name"] for voice in listed["voices"]}
    assert named == {"default": "default", SPANISH: "Dora, Spanish, woman"}
    headers = {"Content-Type": "application/json", "Authorization": "Bearer sk-x",
               "X-OpenWebUI-User-Name": "Ann", "X-OpenWebUI-User-Role": "admin"}  # fmt: skip
    body = {"model": "tts-1", "input": TEXT, "voice": "alloy"}
    answer = httpx.post(
        f"{server.url}/v1/audio/speech", json=body, headers=headers, timeout=PATIENCE
    )
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "audio/mpeg"


def test_clients_of_kokoro(server: Running, said: np.ndarray) -> None:
    """All fields of its request, with its defaults."""
    body = {
        "model": "kokoro", "input": TEXT, "voice": "default", "response_format": "pcm",
        "download_format": None, "speed": 1.0, "stream": True, "return_download_link": False,
        "lang_code": "a", "volume_multiplier": 1.0,
        "normalization_options": {"normalize": True, "unit_normalization": False},
    }  # fmt: skip
    answer = httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=PATIENCE)
    assert answer.content == pcm(said)
    body |= {"lang_code": None, "normalization_options": None, "volume_multiplier": None}
    answer = httpx.post(f"{server.url}/v1/audio/speech", json=body, timeout=PATIENCE)
    assert answer.content == pcm(said)


@pytest.mark.parametrize(
    ("asked", "language"),
    [
        ({}, "en"),
        ({"voice": SPANISH}, "es"),
        ({"voice": {"id": SPANISH.upper()}, "language": None}, "es"),
        ({"voice": "dora"}, "es"),
        ({"voice": SPANISH, "lang_code": "a"}, "en"),
        ({"voice": SPANISH, "language": "fr"}, "fr"),
        ({"voice": "nova"}, "en"),
    ],
)
def test_a_voice_speaks_its_own_language_where_none_is_named(
    server: Running, asked: dict[str, Any], language: str
) -> None:
    """As with Kokoro-FastAPI; Open WebUI cannot name one."""
    answer = server.speech(TEXT, **asked)
    assert answer.headers["nightingale-language"] == language


def test_every_example_of_a_client_is_tested_and_in_the_guide() -> None:
    guide = (ROOT / "docs" / "guide" / "integrations.md").read_text("utf-8")
    assert {path.stem for path in CLIENTS.glob("*.py")} == set(EXAMPLES)
    for name in EXAMPLES:
        assert f"(../../examples/python/clients/{name}.py)" in guide
        first = (CLIENTS / f"{name}.py").read_text("utf-8").splitlines()[0]
        assert re.fullmatch(
            rf'""".* `nightingale (serve|mcp).*: python {name}\.py .*FILE.*"""', first
        )


def test_a_voice_speaks_its_own_language_over_a_websocket(server: Running) -> None:
    address = server.url.replace("http", "ws") + "/v1/audio/speech/live"
    sound = b""
    with connect(address, open_timeout=PATIENCE) as socket:
        for message in ({"type": "begin", "voice": SPANISH}, {"type": "text", "text": TEXT},
                        {"type": "end"}):  # fmt: skip
            socket.send(json.dumps(message))
        while isinstance(came := socket.recv(timeout=PATIENCE), bytes) or '"done"' not in came:
            sound += came if isinstance(came, bytes) else b""
    assert sound == server.speech(TEXT, language="es").content


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "package"), EXAMPLES.items())
def test_examples_of_clients_speak(
    server: Running,
    said: np.ndarray,
    quick_checkpoint: Path,
    tmp_path: Path,
    name: str,
    package: str,
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what they import
        pytest.importorskip(package)
    arguments: list[str | Path] = [server.url, TEXT, tmp_path / "said.wav"]
    if name == "wyoming_client":
        arguments[0] = re.search(r"Wyoming at (tcp://\S+)", "".join(server.log))[1]
    if name == "mcp_client":
        arguments = [*arguments[1:], "--model", quick_checkpoint]
    done = run(*arguments, command=[sys.executable, str(CLIENTS / f"{name}.py")])
    assert done.returncode == 0, done.stderr
    samples, rate = soundfile.read(tmp_path / "said.wav", dtype="int16")
    assert rate == 24000
    assert abs(len(samples) - len(said)) <= 4800


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
def test_pipecat(server: Running, said: np.ndarray) -> None:
    pytest.importorskip("pipecat", reason="pip install 'pipecat-ai[openai]'")
    from pipecat.frames.frames import (
        EndFrame,
        ErrorFrame,
        TTSAudioRawFrame,
        TTSSpeakFrame,
    )
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.runner import PipelineRunner
    from pipecat.pipeline.task import PipelineParams, PipelineTask
    from pipecat.processors.frame_processor import FrameProcessor
    from pipecat.services.openai.tts import OpenAITTSService

    frames: list[Any] = []

    class Keep(FrameProcessor):
        async def process_frame(self, frame: Any, direction: Any) -> None:
            await super().process_frame(frame, direction)
            frames.append(frame)
            await self.push_frame(frame, direction)

    async def talk() -> None:
        service = OpenAITTSService(
            api_key="any",
            base_url=f"{server.url}/v1",
            settings=OpenAITTSService.Settings(voice="nova", instructions="Calmly.", speed=1.0),
        )
        task = PipelineTask(
            Pipeline([service, Keep()]), params=PipelineParams(audio_out_sample_rate=24000)
        )
        await task.queue_frames([TTSSpeakFrame(TEXT), EndFrame()])
        await PipelineRunner(handle_sigint=False).run(task)

    asyncio.run(asyncio.wait_for(talk(), PATIENCE))
    assert not [frame for frame in frames if isinstance(frame, ErrorFrame)]
    sound = b"".join(frame.audio for frame in frames if isinstance(frame, TTSAudioRawFrame))
    expected = pcm(said)
    assert sound[: len(expected)] == expected
    assert not any(sound[len(expected) :])  # its last frame is filled up


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["tts-1", "gpt-4o-mini-tts"])
def test_livekit(server: Running, said: np.ndarray, model: str) -> None:
    """Every format it can ask for: as bytes with tts-1, in events with the other."""
    livekit = pytest.importorskip("livekit.plugins.openai", reason="livekit-plugins-openai")

    async def speak(response_format: str) -> np.ndarray:
        tts = livekit.TTS(
            base_url=f"{server.url}/v1",
            api_key="any",
            model=model,
            voice="alloy",
            response_format=response_format,
        )
        async with tts.synthesize(TEXT) as stream:
            frames = [event.frame async for event in stream]
        await tts.aclose()
        assert {frame.sample_rate for frame in frames} == {24000}
        return np.concatenate([np.frombuffer(frame.data, "<i2") for frame in frames])

    for response_format in ("mp3", "opus", "aac", "flac", "wav", "pcm"):
        heard = asyncio.run(asyncio.wait_for(speak(response_format), PATIENCE))
        assert abs(len(heard) - len(said)) <= 4800, response_format
        if response_format in ("wav", "pcm"):
            assert heard[: len(said)].tobytes() == pcm(said), response_format
