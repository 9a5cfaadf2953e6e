"""Voices that several clients save, delete and use at once, and what errors tell of the disk."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from nightingale import Voice
from nightingale.server import Settings, create_app
from nightingale.server.app import make_engine
from nightingale.server.context import Server
from nightingale.server.errors import without_paths
from nightingale.server.recordings import RecordingReader
from nightingale.voice_folder import FolderFullError, VoiceExistsError, VoiceFolder

from ..test_server_engine import Model, started


def speaker(value: float = 0.5) -> Voice:
    return Voice(np.full(256, value, np.float32), np.array([3, 1, 4], np.int32), 0.7)


class Baker(Model):
    """A model that bakes at once."""

    def bake_voice(self, file: Any) -> Voice:
        return speaker()


@pytest.fixture
def slow_save(monkeypatch: pytest.MonkeyPatch) -> None:
    """All who save have looked before the first has written, unless they take turns."""
    save, together = Voice.save, threading.Barrier(4)

    def late(voice: Voice, path: str | Path) -> None:
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(0.5)
        save(voice, path)

    monkeypatch.setattr(Voice, "save", late)


def outcomes(folder: VoiceFolder, names: list[str], **limits: int) -> Counter[str]:
    def save(name: str) -> str:
        try:
            folder.save(name, speaker(), **limits)
        except ValueError as error:
            return type(error).__name__
        return "saved"

    with ThreadPoolExecutor(len(names)) as pool:
        return Counter(pool.map(save, names))


@pytest.mark.parametrize("names", [4 * ["Eve"], ["Eve", "eve", "EVE", "eVe"]])
def test_of_four_who_save_one_name_one_succeeds(
    tmp_path: Path, slow_save: None, names: list[str]
) -> None:
    folder = VoiceFolder(tmp_path)
    assert outcomes(folder, names) == {"saved": 1, VoiceExistsError.__name__: 3}
    assert len(folder.names()) == 1


def test_no_more_voices_are_saved_than_there_may_be(tmp_path: Path, slow_save: None) -> None:
    folder = VoiceFolder(tmp_path)
    found = outcomes(folder, ["Ada", "Bea", "Cleo", "Dana"], most=2)
    assert found == {"saved": 2, FolderFullError.__name__: 2}
    assert len(folder.names()) == 2


def test_the_server_answers_201_to_one_and_409_to_the_others(
    tmp_path: Path, slow_save: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read(reader: RecordingReader, file: Any) -> Any:
        return file

    monkeypatch.setattr(RecordingReader, "read", read)

    async def ask() -> list[int]:
        with started(Baker) as engine:
            app = create_app(Settings(voices=tmp_path), engine)
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:

                async def create() -> int:
                    files = {"audio_sample": ("a.wav", b"RIFF")}
                    data = {"name": "Eve"}
                    answer = await http.post("/v1/audio/voices", data=data, files=files)
                    return answer.status_code

                return await asyncio.gather(*(create() for _ in range(4)))

    assert sorted(asyncio.run(ask())) == [201, 409, 409, 409]


def test_a_voice_that_is_deleted_while_it_is_looked_up_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    VoiceFolder(tmp_path).save("Eve", speaker())
    with started() as engine:
        server: Server = create_app(Settings(voices=tmp_path), engine).state.server
    is_file = Path.is_file

    def then_gone(path: Path) -> bool:
        found = is_file(path)
        path.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(Path, "is_file", then_gone)
    with pytest.raises(Exception, match="there is no voice 'Eve'") as caught:
        server.find_voice("Eve", ())
    assert caught.value.status_code == 400


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("/srv/my models/small has no voice", "small has no voice"),
        ("cannot open '/srv/my models/small/t3.pt': no", "cannot open 'small/t3.pt': no"),
        ("cannot read /opt/x/y.json: bad", "cannot read y.json: bad"),
        ("see https://example.org/a/b and and/or", "see https://example.org/a/b and and/or"),
        (
            "speed must be between 0.25 and 4.0, not 9.0",
            "speed must be between 0.25 and 4.0, not 9.0",
        ),
    ],
)
def test_messages_name_files_without_their_folders(message: str, told: str) -> None:
    assert without_paths(message, ["/srv/my models"]) == told


def test_an_error_of_the_model_does_not_tell_where_it_is(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    model = shutil.copytree(quick_checkpoint, tmp_path / "secret place" / "model")
    (model / "conds.pt").unlink()

    async def ask() -> httpx.Response:
        settings = Settings(model=str(model), voices=tmp_path / "voices")
        engine = make_engine(settings)
        engine.start()
        try:
            transport = httpx.ASGITransport(create_app(settings, engine))
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
                body = {"model": "nightingale", "input": "Hello."}
                return await http.post("/v1/audio/speech", json=body, timeout=60)
        finally:
            engine.stop()

    answer = asyncio.run(ask())
    assert answer.status_code == 400
    message = answer.json()["error"]["message"]
    assert "has no voice of its own" in message
    assert str(tmp_path) not in message
    assert "secret place" not in message
