"""Voices by what lists show people, such as "Emma, British English, woman": in Python, in commands,
over HTTP, and from Home Assistant, assistants and Speech Dispatcher."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from websockets.sync.client import connect

import nightingale
from nightingale import Voice, cli
from nightingale.batch_requests import Requests
from nightingale.checkpoint import find_checkpoint
from nightingale.manifest import Line
from nightingale.native_voices import title_of
from nightingale.options import LoadOptions
from nightingale.speech_dispatcher import Speaker
from nightingale.voice_folder import VoiceFolder, find_named_voice, find_voice

from .recordings import speech, wav_bytes
from .serving import PATIENCE, Running, pcm, serving

pytestmark = pytest.mark.slow

TEXT = "Hi."
SHORT = {"max_tokens": 8}
OWN = ("bf_emma", "ef_dora")  # voices of the model
KEPT = "if_anna"  # a voice of the folder
EMMA, DORA, ANNA = map(title_of, (*OWN, KEPT))
ALIASES = (f"{DORA}=bf_emma", f"Teacher={ANNA}", "lost=Emma, British English, man")


def speaker(checkpoint: Path, i: int) -> Voice:
    """A voice like the checkpoint's own that another speaks."""
    voice = Voice.load(checkpoint / "conds.pt").with_exaggeration(1 + i)
    return replace(voice, speaker_emb=np.roll(voice.speaker_emb, 50 * (i + 1)))


@pytest.fixture(scope="module")
def model(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint with named voices."""
    folder = tmp_path_factory.mktemp("model") / "checkpoint"
    shutil.copytree(quick_checkpoint, folder, copy_function=os.link)
    (folder / "voices").mkdir()
    for i, name in enumerate(OWN):
        speaker(quick_checkpoint, i).save(folder / "voices" / f"{name}.safetensors")
    return folder


@pytest.fixture(scope="module")
def tts(model: Path, device: str) -> nightingale.TTS:
    return nightingale.load(model, device=device)


@pytest.fixture(scope="module")
def anna(quick_checkpoint: Path) -> Voice:
    return speaker(quick_checkpoint, 2)


@pytest.fixture(scope="module")
def voices(anna: Voice, tmp_path_factory: pytest.TempPathFactory) -> VoiceFolder:
    folder = VoiceFolder(tmp_path_factory.mktemp("voices"))
    folder.save(KEPT, anna)
    return folder


def same(first: nightingale.Audio, second: nightingale.Audio) -> bool:
    return first.samples.tobytes() == second.samples.tobytes()


class TestWhatATitleStandsFor:
    """In commands and in SSML, where a voice of the folder can be named too."""

    @pytest.fixture(params=[find_voice, find_named_voice])
    def find(self, request: pytest.FixtureRequest) -> Callable[..., str | Voice]:
        return request.param

    def test_a_voice_of_the_model_or_of_the_folder(
        self, find: Callable[..., Any], voices: VoiceFolder
    ) -> None:
        for title in (EMMA, EMMA.lower(), EMMA.upper()):
            assert find(title, list(OWN), voices) == "bf_emma"
        assert find(ANNA.upper(), list(OWN), voices).emotion_adv == 3

    def test_a_name_comes_first(self, find: Callable[..., Any], voices: VoiceFolder) -> None:
        assert find(EMMA, [*OWN, EMMA], voices) == EMMA
        assert find(ANNA, [KEPT], voices) == KEPT

    def test_a_file_comes_first(
        self, voices: VoiceFolder, anna: Voice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        anna.save(tmp_path / EMMA)
        assert find_voice(EMMA, list(OWN), voices).emotion_adv == 3
        assert find_named_voice(EMMA, list(OWN), voices) == "bf_emma"

    def test_an_unknown_one_is_told(self, voices: VoiceFolder) -> None:
        for title in ("Emma, British English, man", "Emma, British English", "Emma"):
            with pytest.raises(ValueError, match=f"unknown voice '{title}': the model has bf_emma"):
                find_voice(title, list(OWN), voices)
        with pytest.raises(ValueError, match="'Emma, Italian, woman' cannot name a voice"):
            find_named_voice("Emma, Italian, woman", list(OWN), voices)

    @pytest.mark.parametrize(
        ("own", "kept"), [(["bf_emma", "bf_Emma"], None), (["bf_emma"], "bf_Emma")]
    )
    def test_one_of_two_voices_is_unknown(
        self, anna: Voice, tmp_path: Path, own: list[str], kept: str | None
    ) -> None:
        folder = VoiceFolder(tmp_path)
        if kept is not None:
            folder.save(kept, anna)
        with pytest.raises(ValueError, match=f"unknown voice '{EMMA}'"):
            find_voice(EMMA, own, folder)
        with pytest.raises(ValueError, match=f"'{EMMA}' cannot name a voice"):
            find_named_voice(EMMA, own, folder)

    def test_files_of_the_folder_that_are_no_voices_do_not_count(self, tmp_path: Path) -> None:
        (tmp_path / "bf_Emma.safetensors").touch()
        assert find_voice(EMMA, ["bf_emma"], VoiceFolder(tmp_path)) == "bf_emma"


# Python


def test_python_takes_titles(tts: nightingale.TTS, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = tts.generate(TEXT, voice="bf_emma", **SHORT)
    assert not same(expected, tts.generate(TEXT, **SHORT))
    assert same(expected, tts.generate(TEXT, voice=EMMA.upper(), **SHORT))
    ssml = f"<speak><voice name='{EMMA}'>{TEXT}</voice></speak>"
    assert same(expected, tts.generate(ssml, **SHORT))
    recording = speech(1, 24000)
    converted = (tts.convert(recording, sample_rate=24000, voice=v) for v in ("bf_emma", EMMA))
    assert same(*converted)
    unknown = "Emma, British English, man"
    with pytest.raises(ValueError, match=f"unknown voice '{unknown}': not a file, and the model"):
        tts.generate(TEXT, voice=unknown)
    monkeypatch.setitem(tts._voices, "bf_Emma", tts._voices["ef_dora"])
    for text, voice in ((TEXT, EMMA), (ssml, None)):
        with pytest.raises(ValueError, match=f"unknown voice '{EMMA}'"):
            tts.generate(text, voice=voice)


# Commands


def test_the_command_line_takes_titles(
    model: Path, voices: VoiceFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nightingale.voice_folder.default_voice_folder", lambda: voices.folder)

    def said(voice: str) -> bytes:
        file = tmp_path / "said.wav"
        options = ["--model", str(model), "--voice", voice, "--max-tokens", "8"]
        assert cli.main(["say", TEXT, "-o", str(file), *options]) == 0
        return file.read_bytes()

    assert said(EMMA) == said("bf_emma") != said(KEPT) == said(ANNA.lower())
    mix = ["voices", "--folder", str(tmp_path / "mixed"), "--model", str(model), "mix"]
    for name, voice in (("by name", "bf_emma"), ("by title", EMMA)):
        assert cli.main([*mix, voice, DORA, "0.5", "--name", name]) == 0
    first, second = (VoiceFolder(tmp_path / "mixed").path(name) for name in ("by name", "by title"))
    assert first.read_bytes() == second.read_bytes()


def test_a_batch_takes_titles(
    model: Path, voices: VoiceFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    from nightingale.batch import LineSpeaker, _row

    monkeypatch.setattr("nightingale.voice_folder.default_voice_folder", lambda: voices.folder)
    requests = Requests(find_checkpoint(model), LoadOptions(), SHORT)
    lines = []
    for i, voice in enumerate(("bf_emma", EMMA, KEPT, ANNA)):
        requests.check({"voice": voice})
        lines.append(requests.request(Line(i, TEXT, f"{i}.wav", {"voice": voice})))
    assert lines[0].digest == lines[1].digest != lines[2].digest == lines[3].digest
    speak = LineSpeaker(str(model), LoadOptions(), requests.voices, {}).speak
    made = [row["sha256"] for row in speak([_row(line) for line in lines])]
    assert made[0] == made[1] != made[2] == made[3]


def test_speech_dispatcher_sets_titles(tts: nightingale.TTS, voices: VoiceFolder) -> None:
    chosen = (Speaker(tts, voices, {"synthesis_voice": each}).options() for each in (EMMA, ANNA))
    emma, anna = (options.voice for options in chosen)
    assert emma == "bf_emma"
    assert anna.emotion_adv == 3


def test_assistants_name_titles(tts: nightingale.TTS, voices: VoiceFolder, tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="pip install 'nightingale-tts[mcp]'")
    from nightingale.mcp_server import Speech

    tools = Speech(tts, voices, tmp_path, lambda: None)
    assert tools.options(EMMA, "en", 1.0).voice == "bf_emma"
    assert tools.options(ANNA, "en", 1.0).voice.emotion_adv == 3


# Server


@pytest.fixture(scope="module")
def server(model: Path, voices: VoiceFolder) -> Iterator[Running]:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    wyoming = ("--wyoming", "127.0.0.1:0") if find_spec("wyoming") else ()
    aliases = [word for alias in ALIASES for word in ("--alias", alias)]
    with serving(model, voices.folder, *aliases, *wyoming) as running:
        yield running


def said(tts: nightingale.TTS, voice: str | Voice, language: str = "en", text: str = TEXT) -> bytes:
    chunks = tts.stream(text, voice=voice, language=language)
    return pcm(np.concatenate([chunk.samples for chunk in chunks]))


def test_openais_client_names_titles(server: Running, tts: nightingale.TTS) -> None:
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:

        def spoken(voice: str) -> bytes:
            request = {"model": "tts-1", "input": TEXT, "response_format": "pcm"}
            return client.audio.speech.create(voice=voice, **request).content

        assert spoken(EMMA) == spoken(EMMA.upper()) == said(tts, "bf_emma") != said(tts, "default")
        unknown = "Emma, British English, man"
        there = f"there are: default, bf_emma, ef_dora, {KEPT}"
        with pytest.raises(openai.BadRequestError, match=f"no voice '{unknown}'; {there}"):
            spoken(unknown)
        with pytest.raises(openai.BadRequestError, match=rf"'{unknown}' \(alias 'lost'\); {there}"):
            spoken("lost")


def test_every_listed_name_is_taken(server: Running) -> None:
    listed = httpx.get(f"{server.url}/v1/audio/voices", timeout=PATIENCE).json()["voices"]
    names = {voice["id"]: voice["name"] for voice in listed}
    assert names == {"default": "default", "bf_emma": EMMA, "ef_dora": DORA, KEPT: ANNA}
    del names["ef_dora"]  # of which an alias is made
    for id, name in names.items():
        expected = server.speech(TEXT, voice=id, language="en").content
        for voice in (name, {"id": name}):
            assert server.speech(TEXT, voice=voice, language="en").content == expected


def test_an_alias_comes_before_a_title(server: Running, tts: nightingale.TTS, anna: Voice) -> None:
    spoken = server.speech(TEXT, voice=DORA)
    assert spoken.headers["nightingale-language"] == "en"
    assert spoken.content == said(tts, "bf_emma")
    assert server.speech(TEXT, voice="teacher").content == said(tts, anna, "it")


def test_a_voice_by_its_title_speaks_its_own_language(
    server: Running, tts: nightingale.TTS, anna: Voice
) -> None:
    spoken = server.speech(TEXT, voice=ANNA)
    assert spoken.headers["nightingale-language"] == "it"
    assert spoken.content == said(tts, anna, "it")
    sound = b""
    with connect(f"{server.url.replace('http', 'ws')}/v1/audio/speech/live") as socket:
        for message in ({"type": "begin", "voice": ANNA}, {"type": "text", "text": TEXT},
                        {"type": "end"}):  # fmt: skip
            socket.send(json.dumps(message))
        while isinstance(came := socket.recv(timeout=PATIENCE), bytes) or '"done"' not in came:
            sound += came if isinstance(came, bytes) else b""
    assert sound == spoken.content


def test_ssml_and_conversions_name_titles(server: Running) -> None:
    def named(voice: str) -> bytes:
        return server.speech(f"<speak><voice name='{voice}'>{TEXT}</voice></speak>").content

    def converted(voice: str) -> bytes:
        recording = {"file": ("speech.wav", wav_bytes(speech(1, 24000), 24000))}
        fields = {"voice": voice, "response_format": "pcm"}
        url = f"{server.url}/v1/audio/conversions"
        answer = httpx.post(url, files=recording, data=fields, timeout=PATIENCE)
        return answer.raise_for_status().content

    for spoken in (named, converted):
        assert spoken(EMMA) == spoken("bf_emma")
        assert spoken(ANNA) == spoken(KEPT)


def test_home_assistant_names_what_is_announced(server: Running, tts: nightingale.TTS) -> None:
    pytest.importorskip("wyoming", reason="pip install 'nightingale-tts[wyoming]'")
    from wyoming.client import AsyncTcpClient
    from wyoming.info import Describe, Info
    from wyoming.tts import Synthesize, SynthesizeVoice

    text = "Where is the station? I would like to go there."  # its language is detected
    port = re.search(r"Wyoming at tcp://127\.0\.0\.1:(\d+)", "".join(server.log))[1]

    async def talk() -> bytes:
        async with AsyncTcpClient("127.0.0.1", int(port)) as client:
            await client.write_event(Describe().event())
            (program,) = Info.from_event(await client.read_event()).tts
            titles = {voice.name: voice.description for voice in program.voices}
            voice = SynthesizeVoice(name=titles["bf_emma"])
            await client.write_event(Synthesize(text, voice).event())
            sound = b""
            while (event := await client.read_event()).type != "audio-stop":
                assert event.type in ("audio-start", "audio-chunk"), event
                sound += event.payload or b""
            return sound

    assert asyncio.run(asyncio.wait_for(talk(), PATIENCE)) == said(tts, "bf_emma", text=text)
