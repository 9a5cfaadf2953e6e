"""Text with markup from Python, the command line, HTTP and the WebSocket: what is said, and that
nothing is said of a text that has an error."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.sync.client import ClientConnection, connect

import nightingale
from nightingale import cli
from nightingale.checkpoint import EMBEDDED

from .command import names_in
from .serving import PATIENCE, Running, pcm, serving
from .test_server_live import address, received, send

pytestmark = pytest.mark.slow

SHORT = {"max_tokens": 12, "steps": 1}


@pytest.fixture(scope="module")
def tts() -> nightingale.TTS:
    return nightingale.load()


@pytest.fixture(scope="module")
def voices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A voice folder with Ben."""
    folder = tmp_path_factory.mktemp("voices")
    shutil.copy(EMBEDDED / "voices" / "bm_george.safetensors", folder / "Ben.safetensors")
    return folder


def same(first: nightingale.Audio, second: nightingale.Audio) -> bool:
    return first.samples.tobytes() == second.samples.tobytes()


# Python


@pytest.mark.parametrize(
    ("inside", "text", "options"),
    [
        ("Hello there.", "Hello there.", {}),
        (  # by the one who says the rest
            "<lang xml:lang='fr-FR'>Bonjour.</lang>",
            "Bonjour.",
            {"language": "fr", "voice": "default"},
        ),
        ("<voice name='bm_george'>Hello.</voice>", "Hello.", {"voice": "bm_george"}),
        ("<prosody rate='150%'>Hello.</prosody>", "Hello.", {"speed": 1.5}),
        ("<sub alias='Hello there.'>x</sub>", "Hello there.", {}),
    ],
)
def test_a_part_is_said_as_the_options_would_have_it(
    inside: str, text: str, options: dict[str, Any], tts: nightingale.TTS
) -> None:
    plain = tts.generate(text, **options, **SHORT)
    assert same(tts.generate(f"<speak>{inside}</speak>", **SHORT), plain)
    if options:
        assert not same(tts.generate(text, **SHORT), plain)


def test_rates_multiply_the_speed_up_to_its_limits(tts: nightingale.TTS) -> None:
    text = "<speak><prosody rate='{}'>Hello.</prosody></speak>"
    for rate, speed, expected in (("150%", 1.2, 1.5 * 1.2), ("x-fast", 3.0, 4.0)):
        found = tts.generate(text.format(rate), speed=speed, **SHORT)
        assert same(found, tts.generate("Hello.", speed=expected, **SHORT))


def test_parts_follow_each_other_in_their_own_voices(tts: nightingale.TTS) -> None:
    text = (
        "<speak>Hello. <voice name='bm_george'>Good <lang xml:lang='es'>día 2</lang></voice>"
        "<break time='300ms'/> &amp; bye.</speak>"
    )
    audio = tts.generate(text, steps=1)
    chunks = list(tts.stream(text, steps=1))
    assert audio.tokens.tolist() == np.concatenate([c.tokens for c in chunks]).tolist()
    assert len(audio.samples) == sum(len(c.samples) for c in chunks)
    written = [text[word.source_start : word.source_end] for word in audio.words]
    assert written == ["Hello", "Good", "día", "2", "&amp;", "bye"]
    assert [word.text for word in audio.words][3:5] == ["dos", "And"]
    assert [segment.pause for segment in tts.prepare(text)] == [0.0, 0.0, 0.3, 0.0]


def test_names_may_stand_for_other_voices(tts: nightingale.TTS, voices: Path) -> None:
    ben = nightingale.Voice.load(voices / "Ben.safetensors")
    text = "<speak><voice name='narrator'>Hello.</voice></speak>"
    plain = tts.generate("Hello.", voice=ben, **SHORT)
    assert same(tts.generate(text, find_voice=lambda name: ben, **SHORT), plain)


BAD = {
    "<speak>Hello <p>there": "SSML, line 1, column 22: <p> is not closed",
    "<speak>\n<audio/></speak>": "SSML, line 2, column 1: unknown element <audio>",
    "<speak>Hello. <voice name='Eva'>Hi.</voice></speak>": "SSML, line 1, column 15: ",
    "<speak>Hi. <lang xml:lang='xx'>Hi.</lang></speak>": "column 12: unknown language 'xx'",
    "<speak>Hi. <break time='1h'/></speak>": "column 12: time='1h' is no pause",
    "<speak> <p/> </speak>": "there is no text to speak",
}


@pytest.mark.parametrize("text", BAD)
def test_errors_come_before_any_sound(text: str, tts: nightingale.TTS) -> None:
    for speak in (tts.generate, tts.stream, tts.stepwise):
        with pytest.raises(ValueError, match=BAD[text]):
            speak(text)


def test_voices_are_named_and_never_paths(tts: nightingale.TTS, voices: Path) -> None:
    for name in (voices / "Ben.safetensors", "Eva"):
        with pytest.raises(
            ValueError, match=r"unknown voice .*: the model has default, .*bm_george"
        ):
            tts.generate(f"<speak><voice name='{name}'>Hi.</voice></speak>")


def test_speech_tokens_are_those_of_plain_text(tts: nightingale.TTS) -> None:
    with pytest.raises(ValueError, match="plain segment, not of ssml"):
        tts.speech_tokens("<speak>Hi.</speak>", ssml=True)


def test_captions_are_without_markup(tts: nightingale.TTS) -> None:
    text = "<speak>Tom &amp; <lang xml:lang='es'>Al, <sub alias='so'>MD</sub></lang>.</speak>"
    audio = tts.generate(text, steps=1)
    shown = " ".join(line for line in audio.to_srt().splitlines() if any(map(str.isalpha, line)))
    assert shown == "Tom & Al, MD"
    assert len(audio.written) == len(text)
    assert audio.text == text


@pytest.mark.parametrize(("option", "text"), [("markdown", "# H*ell*o.\n"), ("html", "<b>Hello.")])
def test_markdown_and_html_are_read_without_their_marks(
    option: str, text: str, tts: nightingale.TTS
) -> None:
    audio = tts.generate(text, **{option: True}, **SHORT)
    assert same(audio, tts.generate("Hello.", **SHORT))
    assert audio.written.split() in (["Hello."], ["H", "ell", "o."])
    with pytest.raises(ValueError, match="there is no text to speak"):
        tts.stream("<!-- no -->", **{option: True})


def test_a_text_is_written_in_one_way(tts: nightingale.TTS) -> None:
    with pytest.raises(ValueError, match="written in one way, not in ssml and html"):
        tts.generate("<speak>Hi.</speak>", ssml=True, html=True)


# Command line


def test_the_command_line_reads_ssml(
    voices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr("nightingale.voice_folder.default_voice_folder", lambda: voices)
    text = "<speak>Hi. <voice name='Ben'>Hello 2 you.</voice></speak>"
    file = tmp_path / "talk.SSML"
    file.write_text(f"<!-- a comment -->{text}", "utf-8")
    options = ["--json", "--steps", "1"]
    captions = ["--srt", str(tmp_path / "talk.srt")]
    assert (
        cli.main(["say", "-f", str(file), "-o", str(tmp_path / "1.wav"), *captions, *options]) == 0
    )
    from_file = json.loads(capsys.readouterr().out)
    assert cli.main(["say", text, "--ssml", "-o", str(tmp_path / "2.wav"), *options]) == 0
    from_text = json.loads(capsys.readouterr().out)
    assert from_file["sha256"] == from_text["sha256"]
    assert [text[word[3] : word[4]] for word in from_text["words"]] == ["Hi", "Hello", "2", "you"]
    assert "comment" not in (tmp_path / "talk.srt").read_text("utf-8")
    assert "Hi. Hello 2 you." in (tmp_path / "talk.srt").read_text("utf-8")


@pytest.mark.parametrize("text", BAD)
def test_the_command_line_refuses_in_one_line(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = ["-o", str(tmp_path / "a.wav")]
    assert cli.main(["say", text, "--ssml", *output]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert BAD[text] in told.err
    assert len(told.err.splitlines()) == 1
    assert names_in(tmp_path) == []


@pytest.mark.parametrize(
    ("name", "text"), [("a.md", "# Hi *you*"), ("a.html", "<p>Hi <b>you</b>"), ("a.txt", "Hi you")]
)
def test_the_command_line_reads_files_by_their_names(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    given = ["say", "-f", str(tmp_path / name), "-o", str(tmp_path / "a.wav"), "--json"]
    assert cli.main([*given, "--max-tokens", "12", "--steps", "1"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    assert [word[0] for word in words][:1] == ["Hi"]
    assert text[words[0][3] : words[0][4]] == "Hi"
    assert cli.main([*given, "--html", "--markdown"]) == 1
    assert "written in one way, not in markdown and html" in capsys.readouterr().err


# The server


@pytest.fixture(scope="module")
def server(voices: Path) -> Iterator[Running]:
    with serving(EMBEDDED, voices) as running:
        yield running


@pytest.fixture
def socket(server: Running) -> Iterator[ClientConnection]:
    with connect(address(server), open_timeout=PATIENCE) as connection:
        yield connection


def streamed(tts: nightingale.TTS, text: str, **options: Any) -> bytes:
    return pcm(np.concatenate([chunk.samples for chunk in tts.stream(text, **options)]))


def test_http_takes_ssml(server: Running, tts: nightingale.TTS, voices: Path) -> None:
    text = " <speak>Hello <lang xml:lang='fr'>monde.</lang></speak>"
    answer = server.speech(text, ssml=True, stream_format="json").json()
    assert base64.b64decode(answer["audio"]) == streamed(tts, text)
    assert [text[word[3] : word[4]] for word in answer["words"]] == ["Hello", "monde"]
    ben = nightingale.Voice.load(voices / "Ben.safetensors")
    named = server.speech("<speak><voice name='Ben'>Hello.</voice></speak>")
    assert named.content == streamed(tts, "Hello.", voice=ben)


def test_http_takes_markdown_and_html(server: Running, tts: nightingale.TTS) -> None:
    expected = streamed(tts, "Hi.")
    assert server.speech("# **Hi**.", markdown=True).content == expected
    assert server.speech("<b>Hi</b>.<script>no</script>", html=True).content == expected
    for empty in ({"markdown": True}, {"html": True}):
        answer = server.speech("<!-- no -->", **empty)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "there is no text to speak"
    answer = server.speech("Hi.", markdown=True, html=True)
    assert answer.status_code == 400
    assert "written in one way" in answer.json()["error"]["message"]


def test_http_refuses_what_has_an_error(server: Running, voices: Path) -> None:
    path = voices / "Ben.safetensors"
    named = f"<speak>Hi. <voice name='{path}'>Hi.</voice></speak>"
    for text, expected in {**BAD, named: "SSML, line 1, column 12: there is no voice"}.items():
        answer = server.speech(text, ssml=True)
        assert answer.status_code == 400
        assert expected in answer.json()["error"]["message"]
    assert server.speech("Hi.", ssml="yes").status_code == 400
    assert server.idle()


def test_a_websocket_says_a_document_as_a_whole(
    socket: ClientConnection, tts: nightingale.TTS
) -> None:
    text = "<speak>Hello there. So it is. <p>Bye.</p></speak>"
    for i in range(0, len(text), 5):
        send(socket, "text", text=text[i : i + 5])
    send(socket, "flush")
    messages, sound = received(socket, "error")
    assert (len(messages), sound) == (1, b"")
    assert "said as a whole: send `end`" in messages[0]["error"]["message"]
    send(socket, "end")
    messages, sound = received(socket, "done")
    assert sound == streamed(tts, text)
    words = [word for message in messages for word in message.get("words", [])]
    assert text[words[-1][3] : words[-1][4]] == "Bye"
    send(socket, "text", text="Hi. <speak>")  # no document: it begins with a word
    send(socket, "end")
    assert received(socket, "done")[1]


def test_a_websocket_tells_of_an_error_and_goes_on(
    socket: ClientConnection, tts: nightingale.TTS
) -> None:
    send(socket, "begin", markdown=True, html=True)
    messages, _ = received(socket, "error")
    assert "written in one way" in messages[-1]["error"]["message"]
    send(socket, "begin")
    send(socket, "text", text="<speak>Hello <p>there")
    send(socket, "end")
    messages, sound = received(socket, "error")
    assert sound == b""
    assert "line 1, column 22: <p> is not closed" in messages[-1]["error"]["message"]
    send(socket, "text", text="Hello.")
    send(socket, "end")
    assert received(socket, "done")[1] == streamed(tts, "Hello.")
