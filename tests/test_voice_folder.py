"""Voices by name: what a name may be, and that no name leaves the folder."""

from __future__ import annotations

import os
import stat
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nightingale
from nightingale import Voice
from nightingale.safetensors_writer import write_safetensors
from nightingale.voice_folder import VoiceFolder, default_voice_folder, voice_name


def speaker(value: float) -> Voice:
    return Voice(np.full(256, value, np.float32), np.array([3, 1, 4], np.int32), 0.7)


@pytest.fixture
def voices(tmp_path: Path) -> VoiceFolder:
    folder = VoiceFolder(tmp_path / "voices")
    folder.save("anna", speaker(0.25))
    folder.save("Bob 2", speaker(0.5))
    return folder


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A voice that is not in the folder."""
    path = tmp_path / "secret.safetensors"
    speaker(9).save(path)
    return path


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def shown(name: str) -> str:
    return ascii(name)[:24]


def everything_with(voices: VoiceFolder, name: str) -> dict[str, Callable[[], Any]]:
    return {
        "path": lambda: voices.path(name),
        "load": lambda: voices.load(name),
        "save": lambda: voices.save(name, speaker(1)),
        "overwrite": lambda: voices.save(name, speaker(1), overwrite=True),
        "remove": lambda: voices.remove(name),
    }


def test_a_saved_voice_comes_back_as_it_was(voices: VoiceFolder) -> None:
    assert voices.names() == ["Bob 2", "anna"]
    found = voices.load("anna")
    np.testing.assert_array_equal(found.speaker_emb, np.full(256, 0.25, np.float32))
    np.testing.assert_array_equal(found.cond_prompt_speech_tokens, [3, 1, 4])
    assert found.emotion_adv == 0.7
    assert files_in(voices.folder) == ["Bob 2.safetensors", "anna.safetensors"]


def test_a_repr_says_where_it_is_and_how_many_there_are(voices: VoiceFolder) -> None:
    assert repr(voices) == f"VoiceFolder({str(voices.folder)!r}, 2 voices)"
    voices.remove("anna")
    assert repr(voices) == f"VoiceFolder({str(voices.folder)!r}, 1 voice)"


def test_save_says_where_the_file_is(voices: VoiceFolder) -> None:
    path = voices.save("carl", speaker(1))
    assert path == voices.path("carl") == voices.folder / "carl.safetensors"
    assert Voice.load(path).speaker_emb[0] == 1


def test_a_voice_is_replaced_only_when_asked(voices: VoiceFolder) -> None:
    with pytest.raises(ValueError, match="already") as caught:
        voices.save("anna", speaker(1))
    expected = "there is a voice 'anna' already, which is kept unless it is overwritten"
    assert str(caught.value) == expected
    assert voices.load("anna").speaker_emb[0] == 0.25
    voices.save("anna", speaker(1), overwrite=True)
    assert voices.load("anna").speaker_emb[0] == 1
    assert voices.names() == ["Bob 2", "anna"]


def test_a_removed_voice_is_gone(voices: VoiceFolder) -> None:
    voices.remove("anna")
    assert voices.names() == ["Bob 2"]
    assert files_in(voices.folder) == ["Bob 2.safetensors"]


@pytest.mark.parametrize("call", ["load", "remove"])
def test_an_unknown_name_gets_the_list_of_known_ones(voices: VoiceFolder, call: str) -> None:
    with pytest.raises(ValueError, match="unknown voice") as caught:
        everything_with(voices, "nobody")[call]()
    assert str(caught.value) == f"unknown voice 'nobody'; {voices.folder} has Bob 2, anna"
    empty = VoiceFolder(voices.folder / "empty")
    with pytest.raises(ValueError, match="has none"):
        empty.load("anna")


@pytest.mark.parametrize("thing", [None, "voice.safetensors", 3])
def test_only_a_voice_is_saved(voices: VoiceFolder, thing: object) -> None:
    with pytest.raises(ValueError, match="only a Voice can be saved, not"):
        voices.save("carl", thing)
    assert voices.names() == ["Bob 2", "anna"]


NAMES_THAT_ESCAPE = [
    "..",
    ".",
    "../secret",
    "../secret.safetensors",
    "../../etc/passwd",
    "a/../../secret",
    "a/b",
    "/etc/passwd",
    "//server/share",
    "\\secret",
    "..\\secret",
    "a\\b",
    "C:\\secret",
    "C:secret",
    "anna:stream",
    "~",
    "~root",
    "anna\0",
    "anna\0/../secret",
    "\0",
    "‥",
    "..\uff0fsecret",
    "a\u2044b",
    "a\u2215b",
]
NAMES_THAT_TRIP = [
    "",
    " ",
    "  anna",
    "anna ",
    "anna.",
    "anna..",
    "anna\n",
    "an\tna",
    "an\x7fna",
    "an\u202ena",
    "an\u200bna",
    ".hidden",
    "-rf",
    "_x",
    "\u0301a",
    "*",
    "anna?",
    "a|b",
    'a"b',
    "a<b>",
    "$HOME",
    "%2e%2e%2fsecret",
    "😀",
    "\ud800",
    "x" * 65,
    "x" * 100_000,
    "\U00020000" * 51,
]
WINDOWS_NAMES = ["con", "CON", "Nul", "aux.old", "prn .x", "com1", "LPT9.a.b", "COM¹", "com0"]


@pytest.mark.parametrize("name", NAMES_THAT_ESCAPE + NAMES_THAT_TRIP + WINDOWS_NAMES, ids=shown)
def test_a_forbidden_name_is_refused_by_every_call(
    voices: VoiceFolder, outside: Path, name: str
) -> None:
    before = outside.read_bytes()
    for what, call in everything_with(voices, name).items():
        with pytest.raises(ValueError, match="cannot name a voice: use 1 to 64 letters") as caught:
            call()
        assert "\n" not in str(caught.value), what
        assert len(str(caught.value)) < 800
    assert files_in(voices.folder) == ["Bob 2.safetensors", "anna.safetensors"]
    assert files_in(voices.folder.parent) == ["secret.safetensors", "voices"]
    assert outside.read_bytes() == before


@pytest.mark.parametrize("name", [None, 3, b"anna", Path("anna")])
def test_a_name_is_a_string(voices: VoiceFolder, name: object) -> None:
    for call in everything_with(voices, name).values():
        with pytest.raises(ValueError, match="a voice name must be a string, not"):
            call()


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "7",
        "Anna-Marie O. van_Dyk 2",
        "v1.2",
        "Zoë",
        "李雷",
        "たろう",
        "ประเสริฐ",
        "हिन्दी आवाज़",
        "console",
        "COM10",
        "x" * 64,
        "\U00020000" * 50,
    ],
)
def test_names_of_any_script_are_taken(voices: VoiceFolder, name: str) -> None:
    path = voices.save(name, speaker(2))
    assert path.parent == voices.folder
    assert unicodedata.normalize("NFC", name) in voices.names()
    assert voices.load(name).speaker_emb[0] == 2
    voices.remove(name)
    assert voices.names() == ["Bob 2", "anna"]


def test_two_spellings_of_one_name_are_one_voice(voices: VoiceFolder) -> None:
    composed, decomposed = "Zo\u00eb", "Zoe\u0308"
    assert voice_name(decomposed) == composed
    voices.save(decomposed, speaker(1))
    assert files_in(voices.folder)[1] == f"{composed}.safetensors"
    with pytest.raises(ValueError, match="already"):
        voices.save(composed, speaker(2))
    assert voices.load(composed).speaker_emb[0] == 1


def test_a_file_whose_name_came_decomposed_is_found(voices: VoiceFolder) -> None:
    speaker(3).save(voices.folder / "Zoe\u0308.safetensors")
    assert voices.names() == ["Bob 2", "Zo\u00eb", "anna"]
    assert voices.load("Zo\u00eb").speaker_emb[0] == 3
    voices.save("Zo\u00eb", speaker(4), overwrite=True)
    assert len(files_in(voices.folder)) == 3
    voices.remove("Zo\u00eb")
    assert voices.names() == ["Bob 2", "anna"]


def test_names_that_differ_only_in_case_are_one_voice(voices: VoiceFolder) -> None:
    with pytest.raises(ValueError, match="there is a voice 'anna' already"):
        voices.save("ANNA", speaker(1))
    assert voices.path("Anna").name == "anna.safetensors"
    assert voices.load("aNNA").speaker_emb[0] == 0.25
    voices.save("Anna", speaker(1), overwrite=True)
    assert files_in(voices.folder) == ["Bob 2.safetensors", "anna.safetensors"]
    voices.remove("ANNA")
    assert voices.names() == ["Bob 2"]


def test_the_exact_spelling_is_preferred(voices: VoiceFolder) -> None:
    speaker(6).save(voices.folder / "Anna.safetensors")
    if len(files_in(voices.folder)) < 3:
        pytest.skip("this disk does not tell case apart")
    assert voices.load("Anna").speaker_emb[0] == 6
    assert voices.load("anna").speaker_emb[0] == 0.25
    assert voices.load("ANNA").speaker_emb[0] == 6


@pytest.mark.parametrize("name", ["link", "LINK"])
@pytest.mark.parametrize("target", ["../secret.safetensors", "../missing", "anna.safetensors"])
def test_links_in_the_folder_are_not_followed(
    voices: VoiceFolder, outside: Path, name: str, target: str
) -> None:
    link = voices.folder / "link.safetensors"
    link.symlink_to(target)
    before = outside.read_bytes()
    assert voices.names() == ["Bob 2", "anna"]
    for call in everything_with(voices, name).values():
        with pytest.raises(nightingale.Error) as caught:
            call()
        expected = f"{link} is a link; voices are only read and written in their folder"
        assert str(caught.value) == expected
    assert link.is_symlink()
    assert os.readlink(link) == target
    assert outside.read_bytes() == before
    assert files_in(voices.folder.parent) == ["secret.safetensors", "voices"]


def test_a_name_that_is_a_folder_or_a_pipe_is_refused(voices: VoiceFolder) -> None:
    (voices.folder / "folder.safetensors").mkdir()
    os.mkfifo(voices.folder / "pipe.safetensors")
    assert voices.names() == ["Bob 2", "anna"]
    for name in ("folder", "pipe"):
        for call in everything_with(voices, name).values():
            with pytest.raises(nightingale.Error, match=rf"{name}\.safetensors is not a file"):
                call()


def test_the_folder_itself_may_be_a_link(voices: VoiceFolder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(voices.folder)
    linked = VoiceFolder(str(tmp_path / "elsewhere"))
    assert linked.names() == ["Bob 2", "anna"]
    linked.save("carl", speaker(1))
    assert voices.load("carl").speaker_emb[0] == 1
    linked.remove("anna")
    assert voices.names() == ["Bob 2", "carl"]


def test_files_that_are_no_voices_are_passed_over(voices: VoiceFolder) -> None:
    folder = voices.folder
    write_safetensors(folder / "model.safetensors", {"weight": np.zeros(3, np.float32)})
    (folder / "broken.safetensors").write_bytes(b"not safetensors")
    (folder / "empty.safetensors").touch()
    (folder / ".hidden.safetensors").write_bytes((folder / "anna.safetensors").read_bytes())
    (folder / "notes.txt").write_text("hello")
    (folder / "recording.wav").touch()
    (folder / "sub").mkdir()
    assert voices.names() == ["Bob 2", "anna"]
    for name in ("model", "broken", "empty"):
        with pytest.raises(nightingale.Error) as caught:
            voices.load(name)
        assert str(folder / f"{name}.safetensors") in str(caught.value)
    with pytest.raises(ValueError, match="there is a voice 'broken' already"):
        voices.save("broken", speaker(1))
    voices.remove("broken")
    with pytest.raises(ValueError, match="unknown voice 'notes'"):
        voices.load("notes")


def test_a_folder_that_is_not_there_is_empty_until_a_save(tmp_path: Path) -> None:
    voices = VoiceFolder(tmp_path / "a" / "b")
    assert voices.names() == []
    assert voices.path("anna") == tmp_path / "a" / "b" / "anna.safetensors"
    with pytest.raises(ValueError, match="cannot name a voice"):
        voices.save("../x", speaker(1))
    assert not (tmp_path / "a").exists()
    voices.save("anna", speaker(1))
    assert voices.names() == ["anna"]


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    voices = VoiceFolder(tmp_path / "file")
    with pytest.raises(nightingale.Error) as caught:
        voices.names()
    assert str(caught.value) == f"cannot read {tmp_path / 'file'}: Not a directory"
    assert repr(voices) == f"VoiceFolder({str(tmp_path / 'file')!r}, cannot be read)"


def test_a_saved_voice_is_an_ordinary_file(voices: VoiceFolder) -> None:
    plain = voices.folder / "plain"
    plain.touch()
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (plain, voices.path("anna"))]
    assert modes[0] == modes[1]


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, ".local/share/nightingale/voices"),
        ("linux", {"XDG_DATA_HOME": ""}, ".local/share/nightingale/voices"),
        ("linux", {"XDG_DATA_HOME": "data"}, ".local/share/nightingale/voices"),
        ("linux", {"XDG_DATA_HOME": "/srv/data"}, "/srv/data/nightingale/voices"),
        ("darwin", {"XDG_DATA_HOME": "/srv"}, "Library/Application Support/nightingale/voices"),
        ("win32", {}, "AppData/Local/nightingale/voices"),
        ("win32", {"LOCALAPPDATA": "/users/a"}, "/users/a/nightingale/voices"),
    ],
)
def test_the_user_has_a_folder_by_the_custom_of_the_platform(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    variables: dict[str, str],
    expected: str,
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert default_voice_folder() == tmp_path / expected
    assert files_in(tmp_path) == []
