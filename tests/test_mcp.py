"""`nightingale mcp`, as the PyPI package's client calls its tools over a pipe."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale.voice_folder import VoiceFolder

pytest.importorskip("mcp", reason="pip install 'nightingale-tts[mcp]'")

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from nightingale.mcp_server import AbandonedError, Speech

from .command import PATIENCE, names_in

# An output device that writes what it plays to a file, one block after another as they come.
DEVICE = """
import os, time
class PortAudioError(Exception): pass
class OutputStream:
    def __init__(self, **settings): self.stopped = True
    def start(self): self.stopped = False
    def stop(self): self.stopped = True
    def close(self): pass
    def write(self, block):
        time.sleep(float(os.environ["BLOCK_SECONDS"]))
        with open(os.environ["PLAYED"], "ab") as file: file.write(block.tobytes())
"""
LONG = "This will not be heard to its end. " * 40


def parameters(model: Path, folder: Path, block_seconds: float = 0.0) -> StdioServerParameters:
    """How the server is started, with a device that plays into folder/played."""
    (folder / "modules").mkdir(parents=True, exist_ok=True)
    (folder / "modules" / "sounddevice.py").write_text(DEVICE)
    path = os.pathsep.join([str(folder / "modules"), *sys.path])
    words = ["-m", "nightingale", "mcp", "--model", model, "--folder", folder / "made"]
    return StdioServerParameters(
        command=sys.executable,
        args=[str(word) for word in (*words, "--voices", folder / "voices")],
        env={
            **os.environ,
            "PYTHONPATH": path,
            "PLAYED": str(folder / "played"),
            "BLOCK_SECONDS": str(block_seconds),
        },
    )


def text_of(result: Any) -> str:
    return result.content[0].text


def said(tts: nightingale.TTS, text: str, **settings: Any) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in tts.stream(text, **settings)])


@pytest.mark.slow
def test_a_conversation_with_the_tools(
    quick_checkpoint: Path, quick_tts: nightingale.TTS, tmp_path: Path
) -> None:
    voice = nightingale.Voice.load(quick_checkpoint / "conds.pt").with_exaggeration(1.5)
    VoiceFolder(tmp_path / "voices").save("Anna", voice)
    english = {"language": "en"}

    async def talk() -> None:
        async with Client(stdio_client(parameters(quick_checkpoint, tmp_path))) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"speak", "list_voices", "make_file"}
            assert str(tmp_path / "made") in tools["make_file"].description

            listed = (await client.call_tool("list_voices", {})).structured_content
            assert listed == {
                "voices": ["default", "Anna"],
                "titles": {"default": "default", "Anna": "Anna"},
                "languages": quick_tts.languages,
            }

            spoken = await client.call_tool("speak", {"text": "Hi.", "voice": "Anna", **english})
            assert text_of(spoken).startswith("spoken: ")
            heard = np.frombuffer((tmp_path / "played").read_bytes(), np.float32)
            np.testing.assert_array_equal(heard, said(quick_tts, "Hi.", voice=voice))

            made = await client.call_tool("make_file", {"text": "Hi.", "name": "hi.wav", **english})
            file = tmp_path / "made" / "hi.wav"
            assert text_of(made) == f"written: {file}"
            samples, rate = soundfile.read(file, dtype="float32")
            assert (len(samples), rate) == (len(said(quick_tts, "Hi.")), 24000)

            for name in ("hi.wav", "../out.wav", "/tmp/out.wav", "a/b.wav", "out.txt", ".wav"):
                refused = await client.call_tool("make_file", {"text": "Hi.", "name": name})
                assert refused.is_error, name
            for wrong in ({"voice": "nobody"}, {"voice": "../conds"}, {"language": "tlh"}):
                refused = await client.call_tool("speak", {"text": "Hi.", **wrong})
                assert refused.is_error, wrong
            assert names_in(tmp_path / "made") == ["hi.wav"]

    asyncio.run(asyncio.wait_for(talk(), PATIENCE))


@pytest.mark.slow
def test_cancelling_ends_the_speech(quick_checkpoint: Path, tmp_path: Path) -> None:
    played = tmp_path / "played"

    async def talk() -> None:
        async with Client(stdio_client(parameters(quick_checkpoint, tmp_path, 0.05))) as client:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:

                    async def leave() -> None:
                        while not played.exists():
                            await anyio.sleep(0.02)
                        scope.cancel()

                    group.start_soon(leave)
                    await client.call_tool("speak", {"text": LONG, "language": "en"})
            assert scope.cancelled_caught
            # It is the next one's turn at once, though the first would have played for minutes.
            spoken = await client.call_tool("speak", {"text": "Hi.", "language": "en"})
            assert text_of(spoken).startswith("spoken: ")
            size = played.stat().st_size
            await anyio.sleep(0.5)
            assert played.stat().st_size == size

    asyncio.run(asyncio.wait_for(talk(), PATIENCE))


def test_files_stay_in_their_folder(quick_tts: nightingale.TTS, tmp_path: Path) -> None:
    outside = tmp_path / "outside.wav"
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / "link.wav").symlink_to(outside)
    speech = Speech(quick_tts, VoiceFolder(tmp_path / "voices"), folder, lambda: None)
    options = speech.options(None, "en", 1.0)
    for name in ("link.wav", "../outside.wav", str(outside), "..wav", "CON.wav", "a\0.wav"):
        with pytest.raises(ValueError, match=r"cannot name a file|already"):
            speech.make_file(threading.Event(), "Hi.", options, name)
    assert not outside.exists()
    assert names_in(folder) == ["link.wav"]


def test_what_is_cancelled_leaves_no_file(quick_tts: nightingale.TTS, tmp_path: Path) -> None:
    speech = Speech(quick_tts, VoiceFolder(tmp_path / "voices"), tmp_path / "made", lambda: None)
    over = threading.Event()
    over.set()
    with pytest.raises(AbandonedError):
        speech.make_file(over, "Hi.", speech.options(None, "en", 1.0), "hi.wav")
    assert names_in(tmp_path / "made") == []
