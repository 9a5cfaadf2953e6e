"""`bake`, `voices` and what `--voice` stands for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

import nightingale
from nightingale import cli
from nightingale.voice_folder import VoiceFolder, find_voice

from .command import names_in, run
from .recordings import speech

TEXT = "Hello there."


@pytest.fixture(scope="module")
def model(checkpoint: Path, device: str) -> list[str]:
    return ["--model", str(checkpoint), "--device", device]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recording") / "me.wav"
    soundfile.write(path, speech(6, 24000), 24000)
    return path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's voice folder."""
    path = tmp_path / "voices"
    monkeypatch.setattr("nightingale.voice_folder.default_voice_folder", lambda: path)
    return path


@pytest.fixture
def other_voice(checkpoint: Path) -> nightingale.Voice:
    voice = nightingale.Voice.load(checkpoint / "conds.pt")
    return nightingale.Voice(voice.speaker_emb[::-1].copy())


def test_bake_writes_the_voice_of_a_recording(
    model: list[str], recording: Path, tts: nightingale.TTS, tmp_path: Path
) -> None:
    path = tmp_path / "me.safetensors"
    done = run("bake", recording, "-o", path, "--exaggeration", "0.7", "--json", *model)
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert told["file"] == str(path)
    assert (told["name"], told["exaggeration"]) == (None, 0.7)
    assert told["bytes"] == path.stat().st_size
    voice, expected = nightingale.Voice.load(path), tts.bake_voice(recording)
    assert voice.emotion_adv == 0.7
    assert told["prompt_tokens"] == len(expected.prompt_token)
    np.testing.assert_array_equal(voice.speaker_emb, expected.speaker_emb)
    np.testing.assert_array_equal(voice.prompt_feat, expected.prompt_feat)


def test_a_baked_voice_is_listed_used_and_removed(
    model: list[str],
    recording: Path,
    tts: nightingale.TTS,
    folder: Path,
    no_embedded_checkpoint: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["bake", str(recording), "--name", "Anna", *model]) == 0
    told = f"{folder}/Anna.safetensors: a voice of {recording}\n"
    assert capsys.readouterr() == ("", told)

    assert cli.main(["voices", *model]) == 0
    default = "default\tany language\tof the model\n"
    listed = f"{default}Anna\tany language\t{folder}/Anna.safetensors\n"
    assert capsys.readouterr() == (listed, "")
    assert cli.main(["voices", "--json"]) == 0
    facts = {"Anna": {"title": "Anna", "language": None, "sex": None}}
    listed = {"model": [], "folder": str(folder), "voices": ["Anna"], "facts": facts}
    assert json.loads(capsys.readouterr().out) == listed

    options = ["--voice", "anna", "--max-tokens", "6", "--json", *model]
    assert cli.main(["tokens", TEXT, *options]) == 0
    voice = nightingale.Voice.load(folder / "Anna.safetensors")
    expected = tts.speech_tokens(TEXT, voice=voice, max_tokens=6).tolist()
    assert json.loads(capsys.readouterr().out) == expected

    assert cli.main(["voices", "remove", "Anna"]) == 0
    assert names_in(folder) == []
    assert cli.main(["voices", "remove", "Anna"]) == 1
    message = f"nightingale: unknown voice 'Anna'; {folder} has none\n"
    assert capsys.readouterr().err == message


def test_names_tell_who_speaks(
    other_voice: nightingale.Voice, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ef_dora", "bm_george", "Anna", "xf_other"):
        VoiceFolder(folder).save(name, other_voice)
    assert cli.main(["voices"]) == 0
    listed = [line.split("\t")[:2] for line in capsys.readouterr().out.splitlines()]
    assert listed[-4:] == [
        ["Anna", "any language"],
        ["bm_george", "George, British English, man"],
        ["ef_dora", "Dora, Spanish, woman"],
        ["xf_other", "any language"],
    ]


def test_each_voice_can_be_heard_in_its_language(
    quick_checkpoint: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    voice = nightingale.Voice.load(quick_checkpoint / "conds.pt")
    VoiceFolder(folder).save("ef_dora", voice)
    played = []
    monkeypatch.setattr(nightingale.Audio, "play", lambda audio: played.append(audio))
    assert cli.main(["voices", "--play", "--model", str(quick_checkpoint)]) == 0
    assert [audio.language for audio in played] == ["en", "es"]
    assert [audio.duration > 0.5 for audio in played] == [True, True]
    assert "ef_dora: Hoy hace buen tiempo" in capsys.readouterr().err


def test_two_voices_are_mixed(
    checkpoint: Path, folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    voice = nightingale.Voice.load(checkpoint / "conds.pt")
    other = replace(voice, speaker_emb=voice.speaker_emb[::-1].copy(), emotion_adv=1.0)
    VoiceFolder(folder).save("Anna", other)
    named = ["--model", str(checkpoint)]
    assert cli.main(["voices", "mix", "default", "anna", "0.25", "--name", "Ada", *named]) == 0
    told = f"{folder}/Ada.safetensors: default with 0.25 of anna\n"
    assert capsys.readouterr() == ("", told)
    found, expected = VoiceFolder(folder).load("Ada"), voice.mixed(other, 0.25)
    np.testing.assert_array_equal(found.speaker_emb, expected.speaker_emb)
    np.testing.assert_array_equal(found.embedding, expected.embedding)
    assert found.emotion_adv == 0.625

    again = ["voices", *named, "--json", "mix", f"{folder}/Anna.safetensors", "Ada", "1"]
    assert cli.main([*again, "--name", "ada"]) == 1
    assert capsys.readouterr().err == (
        "nightingale: there is a voice 'ada' already; --overwrite replaces it\n"
    )
    elsewhere = ["--name", "Eve", "--folder", str(tmp_path / "other")]
    assert cli.main([*again, *elsewhere]) == 1
    assert "unknown voice 'Ada'" in capsys.readouterr().err
    assert cli.main([*again, "--name", "ada", "--overwrite"]) == 0
    file = str(folder / "Ada.safetensors")
    told = {"file": file, "name": "ada", "share": 1.0}
    assert json.loads(capsys.readouterr().out) == told
    assert names_in(folder) == ["Ada.safetensors", "Anna.safetensors"]
    assert cli.main(["voices", "mix", "Ada", "anna", "1.5", "--name", "x", *named]) == 1
    assert capsys.readouterr().err == "nightingale: share must be between 0 and 1, not 1.5\n"


def test_a_recording_is_cloned_once(
    quick_checkpoint: Path,
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("nightingale.voice_cache.cache_folder", lambda: tmp_path / "cache")
    baked = []
    bake = nightingale.TTS.bake_voice
    monkeypatch.setattr(
        nightingale.TTS, "bake_voice", lambda tts, file: baked.append(file) or bake(tts, file)
    )
    heard = []
    copy = tmp_path / "copy.wav"
    copy.write_bytes(recording.read_bytes())
    louder = tmp_path / "louder.wav"
    soundfile.write(louder, 1.5 * speech(6, 24000), 24000)
    for file in (recording, copy, louder):
        words = ["Hello", "there.", "--voice", str(file), "--max-tokens", "6", "--json"]
        assert cli.main(["tokens", *words, "--model", str(quick_checkpoint)]) == 0
        heard.append(json.loads(capsys.readouterr().out))
    assert baked == [recording, louder]
    assert len(names_in(tmp_path / "cache")) == 2
    tts = nightingale.load(quick_checkpoint)
    expected = tts.speech_tokens(TEXT, voice=bake(tts, recording), max_tokens=6).tolist()
    assert heard[0] == heard[1] == expected
    with pytest.raises(nightingale.Error, match=r"me\.wav is a recording, not a voice: bake"):
        tts.generate(TEXT, voice=recording)


def test_languages_are_listed(checkpoint: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["languages", "--model", str(checkpoint)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 23
    assert lines[:2] == ["ar\tArabic", "da\tDanish"]
    assert cli.main(["languages", "--json", "--model", str(checkpoint)]) == 0
    assert json.loads(capsys.readouterr().out)["pt"] == "Portuguese"


def test_a_voice_of_that_name_is_kept_unless_told_otherwise(
    model: list[str],
    recording: Path,
    other_voice: nightingale.Voice,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = VoiceFolder(folder).save("Anna", other_voice).read_bytes()
    # The model is not even loaded: there is none of that name.
    assert cli.main(["bake", str(recording), "--name", "anna", "--model", "none"]) == 1
    message = "nightingale: there is a voice 'anna' already; --overwrite replaces it\n"
    assert capsys.readouterr().err == message
    assert (folder / "Anna.safetensors").read_bytes() == kept

    assert cli.main(["bake", str(recording), "--name", "anna", "--overwrite", *model]) == 0
    assert names_in(folder) == ["Anna.safetensors"]
    assert (folder / "Anna.safetensors").read_bytes() != kept


def test_another_folder_can_be_named(
    other_voice: nightingale.Voice,
    folder: Path,
    tmp_path: Path,
    no_embedded_checkpoint: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    there = tmp_path / "there"
    for name in ("A", "B", "C"):
        VoiceFolder(there).save(name, other_voice)
    assert cli.main(["voices", "--folder", str(there), "remove", "B"]) == 0
    assert cli.main(["voices", "remove", "C", "--folder", str(there)]) == 0
    assert cli.main(["voices", "--folder", str(there)]) == 0
    assert capsys.readouterr().out == f"A\tany language\t{there}/A.safetensors\n"
    assert not folder.exists()


@pytest.mark.parametrize(
    ("args", "phrase"),
    [
        (["me.wav", "-o", "me.pt"], "'me.pt' must end in .safetensors"),
        (["none.wav", "-o", "me.safetensors"], "there is no recording none.wav"),
        (["me.wav", "--name", "../me"], "'../me' cannot name a voice: use 1 to 64 letters"),
        (["me.wav", "--name", ""], "'' cannot name a voice: use 1 to 64 letters"),
        (["text.wav", "-o", "me.safetensors"], "text.wav"),
    ],
)
def test_what_cannot_be_baked_is_told_in_one_line(
    args: list[str],
    phrase: str,
    model: list[str],
    recording: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "me.wav").symlink_to(recording)
    (tmp_path / "text.wav").write_text("this is no sound")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["bake", *args, *model]) == 1
    output, errors = capsys.readouterr()
    assert output == ""
    assert phrase in errors
    assert len(errors.splitlines()) == 1
    assert names_in(tmp_path) == ["me.wav", "text.wav"]


def test_bake_wants_one_place(capsys: pytest.CaptureFixture[str]) -> None:
    for args in ([], ["-o", "a.safetensors", "--name", "A"]):
        with pytest.raises(SystemExit) as caught:
            cli.main(["bake", "me.wav", *args])
        assert caught.value.code == 2
        assert "--name" in capsys.readouterr().err


class TestFindVoice:
    """The model's voices come first, then the folder's, then files."""

    @pytest.fixture
    def voices(
        self,
        folder: Path,
        other_voice: nightingale.Voice,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> VoiceFolder:
        monkeypatch.chdir(tmp_path)
        voices = VoiceFolder(folder)
        for name, exaggeration in (("default", 1), ("Anna", 2)):
            voices.save(name, other_voice.with_exaggeration(exaggeration))
        for name, exaggeration in (("default", 3), ("Anna", 4), ("Berta", 5)):
            other_voice.with_exaggeration(exaggeration).save(tmp_path / name)
        return voices

    def test_in_this_order(self, voices: VoiceFolder) -> None:
        assert find_voice("default", ["default"], voices) == "default"
        assert find_voice("default", [], voices).emotion_adv == 1
        assert find_voice("Anna", ["default"], voices).emotion_adv == 2
        assert find_voice("Berta", ["default"], voices).emotion_adv == 5

    def test_what_has_a_separator_is_a_path(self, voices: VoiceFolder, folder: Path) -> None:
        assert find_voice("./Anna", ["default"], voices).emotion_adv == 4
        assert find_voice("voices/Anna.safetensors", [], voices).emotion_adv == 2
        with pytest.raises(ValueError, match=r"unknown voice '\.\./voices/Anna'"):
            find_voice("../voices/Anna", [], voices)

    def test_what_is_nothing_of_these_is_unknown(self, voices: VoiceFolder, folder: Path) -> None:
        expected = f"unknown voice 'Carla': the model has default, {folder} has Anna, default, "
        with pytest.raises(ValueError, match="and it is not a file") as caught:
            find_voice("Carla", ["default"], voices)
        assert str(caught.value).startswith(expected)
