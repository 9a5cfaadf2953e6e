"""Stage 1: the teacher's speech for the texts, as shards of int16 sound with an index.

    python -m train.corpus TEACHER TEXTS.jsonl OUT [--hours H] [--parts N]
    python -m train.corpus tiny OUT                     a stand-in that needs no teacher

TEACHER holds speak.py beside the teacher's files. OUT/audio-*.npy holds clips laid end to end,
24 kHz mono, and OUT/index.jsonl a line for each: id lang voice speed text phonemes source shard
start samples durations. A clip is a whole number of speech tokens long; durations are 25 ms frames
of silence, of each phoneme, of silence.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from .clips import RATE, TARGET, Cut, cut_silence, speech_level, taken
from .shards import read_index, write_index, write_shard
from .voices import write_with_blends

PACE = (0.5, 2.0)  # times the usual samples a phoneme, beyond which the teacher failed
SHORT = 12  # phonemes, below which pace says nothing
LEAST_LEVEL = -45.0  # dB of full scale


def make_folder(out: Path) -> None:
    """One that is there already must be empty: a corpus is not written over another."""
    if out.exists() and not out.is_dir():
        raise SystemExit(f"{out} is not a folder; name a new one for the corpus")
    if out.exists() and (found := sorted(path.name for path in out.iterdir())):
        raise SystemExit(f"{out} already holds {found[0]}; name a new or an empty folder")
    out.mkdir(parents=True, exist_ok=True)


def write_tiny(out: Path) -> None:
    """Two minutes of the stand-in's sound in five languages."""
    from .stand_in import utterances

    make_folder(out)
    write_index(out, write_shard(out, "audio-00000.npy", utterances()))


def select(texts: Path, out: Path, hours: float | None) -> list[dict]:
    """Writes the first texts that make about `hours`, or all, and gives them."""
    chosen, seconds = [], 0.0
    with texts.open(encoding="utf-8") as lines:
        for line in lines:
            if hours is not None and seconds > 3600 * hours:
                break
            row = json.loads(line)
            chosen.append(row)
            seconds += 0.35 + 0.0504 * len(row["phonemes"]) / row["speed"]
    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in chosen)
    print(f"{len(chosen)} texts, about {seconds / 3600:.1f} h", flush=True)
    return chosen


def speak(teacher: Path, texts: Path, voices: set[str], out: Path, parts: int) -> list[Path]:
    """Has speak.py say the texts in `parts` processes at once. → the folder of each"""
    blended = out / "teacher"
    blended.mkdir()
    for file in teacher.iterdir():
        if file.name != "voices.safetensors":
            (blended / file.name).symlink_to(file.resolve())
    write_with_blends(teacher / "voices.safetensors", blended / "voices.safetensors", voices)
    folders = [out / f"raw-{part}" for part in range(parts)]
    command = [sys.executable, teacher / "speak.py", blended, texts]
    running = [
        subprocess.Popen([*command, folder, "--durations", "--part", f"{part}/{parts}"])
        for part, folder in enumerate(folders)
    ]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise SystemExit("speak.py failed: see above")
    return folders


@dataclass
class RawShard:
    """A file that speak.py wrote, the rows in it, and what is known of each."""

    path: Path
    rows: list[dict]
    cuts: list[Cut] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)  # dB of full scale

    def clips(self) -> list[np.ndarray]:
        """[n] int16 each"""
        sound = np.load(self.path, mmap_mode="r")
        return [sound[row["start"] : row["start"] + row["samples"]] for row in self.rows]


def raw_shards(folders: list[Path], vocabulary: dict[str, int]) -> list[RawShard]:
    shards: dict[Path, RawShard] = {}
    for folder in folders:
        for row in read_index(folder):
            # Signs that the teacher does not read have no duration.
            row["phonemes"] = "".join(sign for sign in row["phonemes"] if sign in vocabulary)
            path = folder / row["shard"]
            shards.setdefault(path, RawShard(path, [])).rows.append(row)
    return list(shards.values())


def measured(shard: RawShard) -> RawShard:
    """With what to take of each clip, and its level."""
    clips = shard.clips()
    durations = [row["durations"] for row in shard.rows]
    cuts = [cut_silence(*clip) for clip in zip(clips, durations, strict=True)]
    return RawShard(shard.path, shard.rows, cuts, [speech_level(clip) for clip in clips])


def voice_gains(shards: list[RawShard]) -> dict[str, float]:
    """dB that bring the middle of each voice's clips to the level that all shall have."""
    levels = defaultdict(list)
    for shard in shards:
        for row, level in zip(shard.rows, shard.levels, strict=True):
            levels[row["voice"]].append(level)
    return {voice: TARGET - statistics.median(found) for voice, found in levels.items()}


def usual_paces(shards: list[RawShard]) -> dict[str, float]:
    """Samples a phoneme, the middle of each accent's clips."""
    paces = defaultdict(list)
    for shard in shards:
        for row, cut in zip(shard.rows, shard.cuts, strict=True):
            paces[row["lang"]].append(_pace(row, cut))
    return {accent: statistics.median(found) for accent, found in paces.items()}


def _pace(row: dict, cut: Cut) -> float:
    return (cut.end - cut.begin) * row["speed"] / len(row["phonemes"])


def rewrite(
    shard: RawShard, name: str, out: Path, gains: dict[str, float], paces: dict[str, float]
) -> list[str]:
    """The good clips of a raw shard as the shard `name`; the raw one goes. → lines of the index"""

    def good(row: dict, cut: Cut, level: float) -> bool:
        pace = _pace(row, cut) / paces[row["lang"]]
        steady = len(row["phonemes"]) < SHORT or PACE[0] < pace < PACE[1]
        return level > LEAST_LEVEL and steady

    found = zip(shard.rows, shard.clips(), shard.cuts, shard.levels, strict=True)
    lines = write_shard(
        out,
        name,
        (
            (row | {"durations": cut.durations}, taken(clip, cut, gains[row["voice"]]))
            for row, clip, cut, level in found
            if good(row, cut, level)
        ),
    )
    shard.path.unlink()
    return lines


def write_spoken(teacher: Path, texts: Path, out: Path, hours: float | None, parts: int) -> None:
    """The whole stage: has the teacher speak, then cuts, chooses and evens out what it said."""
    started = time.monotonic()
    make_folder(out)
    rows = select(texts, out / "texts.jsonl", hours)
    voices = {row["voice"] for row in rows}
    folders = speak(teacher, out / "texts.jsonl", voices, out, parts)
    spoken = time.monotonic()
    vocabulary = json.loads((teacher / "vocab.json").read_text("utf-8"))
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        shards = list(pool.map(measured, raw_shards(folders, vocabulary)))
        settle = partial(rewrite, out=out, gains=voice_gains(shards), paces=usual_paces(shards))
        names = [f"audio-{number:05d}.npy" for number in range(len(shards))]
        lines = [line for found in pool.map(settle, shards, names) for line in found]
    write_index(out, lines)
    for folder in (*folders, out / "teacher"):
        shutil.rmtree(folder)
    report(out, dropped=len(rows) - len(lines))
    now = time.monotonic()
    print(f"{spoken - started:.0f} s to speak, {now - spoken:.0f} s to cut", flush=True)


def report(out: Path, dropped: int) -> None:
    """Hours by language."""
    hours, clips = defaultdict(float), defaultdict(int)
    for entry in read_index(out):
        hours[entry["lang"]] += entry["samples"] / RATE / 3600
        clips[entry["lang"]] += 1
    for accent in sorted(hours):
        print(f"{accent:6s} {clips[accent]:7d} clips {hours[accent]:7.2f} h")
    print(f"all    {sum(clips.values()):7d} clips {sum(hours.values()):7.2f} h, {dropped} dropped")


def main() -> None:
    if sys.argv[1:2] == ["tiny"]:
        parser = argparse.ArgumentParser(prog="train.corpus tiny", description=write_tiny.__doc__)
        parser.add_argument("out", type=Path)
        write_tiny(parser.parse_args(sys.argv[2:]).out)
        return
    parser = argparse.ArgumentParser(
        prog="train.corpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("teacher", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--hours", type=float, help="about so much of the beginning; default: all")
    parser.add_argument("--parts", type=int, default=2, help="processes that share the GPU")
    given = parser.parse_args()
    write_spoken(given.teacher, given.texts, given.out, given.hours, given.parts)


if __name__ == "__main__":
    main()
