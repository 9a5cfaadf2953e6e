"""Respellings in Python, on the command line, in batches and over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import nightingale
from nightingale import Lexicon, cli
from nightingale.batch_requests import Requests
from nightingale.checkpoint import find_checkpoint
from nightingale.manifest import Line, read_manifest
from nightingale.options import LoadOptions

pytestmark = pytest.mark.slow

TEXT = "A GIF for Nguyen."
RESPELLED = "A jif for Win."


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("lexicons")
    contents = {"first.txt": "GIF = giff\nNguyen = Win\n", "second.txt": "[en]\nGIF = jif\n"}
    for name, content in contents.items():
        (folder / name).write_text(content)
    return [folder / name for name in contents]


@pytest.fixture(scope="module")
def said(quick_tts: nightingale.TTS) -> nightingale.Audio:
    return quick_tts.generate(RESPELLED, max_tokens=8)


def test_python_takes_a_lexicon(
    quick_tts: nightingale.TTS, files: list[Path], said: nightingale.Audio
) -> None:
    lexicon = Lexicon.load(*files)
    for given in (files, lexicon, [str(file) for file in files], {"GIF": "jif", "Nguyen": "Win"}):
        spoken = quick_tts.generate(TEXT, lexicon=given, max_tokens=8)
        assert spoken.samples.tobytes() == said.samples.tobytes()
        assert spoken.text == TEXT
    tokens = quick_tts.speech_tokens(TEXT, lexicon=lexicon, max_tokens=8)
    assert tokens.tolist() == quick_tts.speech_tokens(RESPELLED, max_tokens=8).tolist()
    words = quick_tts.generate(TEXT, lexicon=lexicon, max_tokens=8).words
    sources = {word.text: TEXT[word.source_start : word.source_end] for word in words}
    assert sources["jif"] == "GIF"
    with pytest.raises(ValueError, match="lexicon must be a path"):
        quick_tts.generate(TEXT, lexicon=5)


def test_the_command_line_takes_several_files(
    quick_checkpoint: Path,
    files: list[Path],
    said: nightingale.Audio,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = [word for file in files for word in ("--lexicon", str(file))]
    model = ["--model", str(quick_checkpoint), "--max-tokens", "8"]
    output = ["-o", str(tmp_path / "a.wav"), "--json"]
    assert cli.main(["say", TEXT, *given, *model, *output]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == said.tokens.tolist()

    bad = tmp_path / "bad.txt"
    bad.write_text("GIF = jif\nno separator\n")
    assert cli.main(["say", TEXT, "--lexicon", str(bad), *model, *output]) == 1
    assert f"{bad}, line 2: write WORD = RESPELLING" in capsys.readouterr().err
    assert cli.main(["serve", "--lexicon", str(bad), "--port", "0"]) == 1
    assert f"{bad}, line 2: write WORD = RESPELLING" in capsys.readouterr().err


def test_a_batch_depends_on_the_content_of_the_lexicon(
    quick_checkpoint: Path, files: list[Path], tmp_path: Path
) -> None:
    manifest = tmp_path / "manifest.jsonl"
    copy = tmp_path / "copy.txt"
    copy.write_text(files[0].read_text())

    def digest(given: object, default: object = None) -> str:
        defaults = {} if default is None else {"lexicon": default}
        requests = Requests(find_checkpoint(quick_checkpoint), LoadOptions(), defaults)
        line = {"text": TEXT} | ({} if given is None else {"lexicon": given})
        manifest.write_text(json.dumps(line))
        (read,) = read_manifest(manifest, requests.check)
        return requests.request(read).digest

    plain, first = digest(None), digest(str(files[0]))
    assert first == digest(str(copy)) == digest([str(copy)]) == digest(None, [str(files[0])])
    assert len({plain, first, digest([str(file) for file in files])}) == 3
    copy.write_text("GIF = jiff\n")
    assert digest(str(copy)) not in (plain, first)
    for bad in (5, "", [5], {"GIF": "jif"}):
        with pytest.raises(ValueError, match="1 line is wrong"):
            digest(bad)
    with pytest.raises(ValueError, match="1 line is wrong"):
        digest(str(tmp_path / "none.txt"))


def test_a_batch_takes_the_content_where_it_is_spoken(
    quick_checkpoint: Path, files: list[Path], said: nightingale.Audio
) -> None:
    from nightingale.batch import LineSpeaker, _row

    options = {"lexicon": [str(file) for file in files], "max_tokens": 8}
    requests = Requests(find_checkpoint(quick_checkpoint), LoadOptions(), options)
    request = requests.request(Line(1, TEXT, "1.wav", {}))
    plain = requests.request(Line(2, RESPELLED, "2.wav", {"lexicon": None}))
    speaker = LineSpeaker(str(quick_checkpoint), LoadOptions(), {}, requests.lexicons)
    made = speaker.speak([_row(each) for each in (request, plain)])
    assert made[0]["error"] == ""
    assert made[0]["sha256"] == made[1]["sha256"]


@pytest.fixture(scope="module")
def client(quick_checkpoint: Path, files: list[Path]) -> Iterator[object]:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    from starlette.testclient import TestClient

    from nightingale.server import Settings, create_app

    settings = Settings(model=str(quick_checkpoint), lexicon=files)
    with TestClient(create_app(settings), base_url="http://localhost") as client:
        yield client


def test_a_server_has_one_for_all_requests(client) -> None:
    body = {"model": "nightingale", "input": "GIF.", "stream_format": "json"}
    answer = client.post("/v1/audio/speech", json=body).json()
    assert [word[0] for word in answer["words"]] == ["Jif"]
    with client.websocket_connect("ws://localhost/v1/audio/speech/live") as socket:
        socket.send_json({"type": "text", "text": "GIF."})
        socket.send_json({"type": "end"})
        told: dict[str, object] = {}
        while told.get("type") != "words":
            told = json.loads(socket.receive().get("text") or "{}")
    assert [word[0] for word in told["words"]] == ["Jif"]


def test_a_client_cannot_name_a_file_of_the_server() -> None:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    from nightingale.server.live import Begin
    from nightingale.server.speech import SpeechRequest

    assert "lexicon" not in {*SpeechRequest.model_fields, *Begin.model_fields}


def test_settings_and_arguments_of_ray_read_the_files(files: list[Path]) -> None:
    pytest.importorskip("fastapi", reason="pip install 'nightingale-tts[server]'")
    from nightingale.ray import Arguments, server_settings

    for given in (str(files[0]), [str(files[0])]):
        assert server_settings(Arguments(lexicon=given)).lexicon == Lexicon.load(files[0])
    assert server_settings(Arguments()).lexicon is None
