"""Clips of the teacher and the student for an evaluation, stored as WAV files."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import soundfile

from .clips import RATE, cut_silence, read_index

CLIPS_PER_CALL = 100  # lost if the teacher is interrupted


class Teacher:
    """Its clips are in OUT/teacher*, as written by speak.py; missing ones are synthesized."""

    def __init__(self, out: Path, folder: Path | None) -> None:
        """folder: of the teacher, with speak.py; None if all clips exist"""
        self._out, self._folder = out, folder

    def synthesize(self, rows: list[dict]) -> dict[str, Path]:
        """WAV files by id, trimmed as for training."""
        spoken = self._spoken()
        missing = [row for row in rows if row["id"] not in spoken]
        for first in range(0, len(missing), CLIPS_PER_CALL):
            self._speak(missing[first : first + CLIPS_PER_CALL])
        spoken = self._spoken()
        return {row["id"]: _wav(*spoken[row["id"]]) for row in rows}

    def _spoken(self) -> dict[str, tuple[Path, dict]]:
        folders = [path.parent for path in sorted(self._out.glob("teacher*/index.jsonl"))]
        return {row["id"]: (folder, row) for folder in folders for row in read_index(folder)}

    def _speak(self, rows: list[dict]) -> None:
        if self._folder is None:
            raise SystemExit(f"the teacher has no clip of {rows[0]['id']}; give --teacher")
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
    """The model that is evaluated; its clips are in OUT/student."""

    def __init__(self, out: Path, model: Path) -> None:
        import nightingale

        self._folder = out / "student"
        self._folder.mkdir(exist_ok=True)
        self._tts = nightingale.load(model)

    def synthesize(self, row: dict, reference: Path | None = None) -> Path:
        """The WAV file of a row: in a clone of the recording `reference`, in the row's voice if the
        model has it, or in one of the model's voices in turn."""
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
