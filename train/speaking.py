"""Who speaks in an evaluation: the teacher and the student, each clip kept as a WAV file."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile

from .clips import RATE, cut_silence
from .shards import read_index

SPOKEN_AT_ONCE = 100  # clips that are lost if the teacher is stopped


class Teacher:
    """Its clips stand in OUT/teacher*, as speak.py writes them; what is missing it says anew."""

    def __init__(self, out: Path, folder: Path | None) -> None:
        """folder: the teacher's, speak.py in it; None where everything has been said."""
        self._out, self._folder = out, folder

    def say(self, rows: list[dict]) -> dict[str, Path]:
        """WAV files by id, their silence cut as it is for training."""
        spoken = self._spoken()
        missing = [row for row in rows if row["id"] not in spoken]
        for first in range(0, len(missing), SPOKEN_AT_ONCE):
            self._speak(missing[first : first + SPOKEN_AT_ONCE])
        spoken = self._spoken()
        return {row["id"]: _wav(*spoken[row["id"]]) for row in rows}

    def _spoken(self) -> dict[str, tuple[Path, dict]]:
        folders = [path.parent for path in sorted(self._out.glob("teacher*/index.jsonl"))]
        return {row["id"]: (folder, row) for folder in folders for row in read_index(folder)}

    def _speak(self, rows: list[dict]) -> None:
        if self._folder is None:
            raise SystemExit(f"the teacher has not said {rows[0]['id']} yet: give --teacher")
        out = self._out / f"teacher-{len(list(self._out.glob('teacher*'))):03d}"
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as texts:
            texts.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            texts.flush()
            command = [sys.executable, self._folder / "speak.py", self._folder, texts.name, out]
            subprocess.run([*command, "--durations", "--batch-seconds", "40"], check=True)


def _wav(folder: Path, row: dict) -> Path:
    path = folder / f"{row['id']}.wav"
    if not path.exists():
        sound = np.load(folder / row["shard"], mmap_mode="r")
        clip = sound[row["start"] : row["start"] + row["samples"]]
        cut = cut_silence(clip, row["durations"])
        soundfile.write(path, clip[cut.begin : cut.end], RATE)
    return path


class Student:
    """The model that is evaluated; its clips stand in OUT/student."""

    def __init__(self, out: Path, model: Path) -> None:
        import nightingale

        self._folder = out / "student"
        self._folder.mkdir(exist_ok=True)
        self._tts = nightingale.load(model)

    def say(self, row: dict, reference: Path | None = None) -> Path:
        """The WAV file of a row, said by a clone of the recording `reference`, else by the row's
        voice, if the model has it, or by the model's own in turn."""
        path = self._folder / f"{row['id']}.wav"
        if not path.exists():
            voice = self._voice(row) if reference is None else self._tts.bake_voice(reference)
            audio = self._tts.generate(row["text"], voice=voice, language=row["language"])
            audio.save(path)
        return path

    def _voice(self, row: dict) -> str:
        names = self._tts.voices
        if row["voice"] in names:
            return row["voice"]
        return names[int(row["id"].rpartition("-")[2]) % len(names)]
