"""Stage 1: synthesizes the texts with the teacher, as shards of int16 audio with an index.

    python -m train.corpus TEACHER TEXTS.jsonl OUT [--hours H] [--skip-hours H] [--processes N]
    python -m train.corpus join OUT CORPUS ...          one corpus of several, without copying audio
    python -m train.corpus synthetic OUT                a small corpus that needs no teacher

TEACHER has the teacher's files and speak.py. OUT/audio-*.npy has concatenated clips, 24 kHz mono,
and OUT/index.jsonl a line for each: id lang voice speed text phonemes source shard start samples
durations. A clip has a whole number of speech tokens; durations are 25 ms frames of silence, of
each phoneme, of silence.
"""

from __future__ import annotations

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

from .clips import (
    RATE,
    TARGET,
    Cut,
    cut_clip,
    cut_silence,
    read_index,
    speech_level,
    write_index,
    write_shard,
)
from .options import command_parser
from .voices import write_with_blends

RATE_RATIO = (0.5, 2.0)  # of the median samples per phoneme; the teacher failed outside of it
SHORT = 12  # phonemes, below which the rate is not checked
MIN_LEVEL = -45.0  # dB of full scale


def make_folder(out: Path) -> None:
    """Creates the output folder; an existing one must be empty."""
    if out.exists() and not out.is_dir():
        raise SystemExit(f"{out} is not a folder; name a new one for the corpus")
    if out.exists() and (found := sorted(path.name for path in out.iterdir())):
        raise SystemExit(f"{out} already holds {found[0]}; name a new or an empty folder")
    out.mkdir(parents=True, exist_ok=True)


def write_synthetic(out: Path) -> None:
    """Writes two minutes of synthetic speech in five languages."""
    from .synthetic_speech import utterances

    make_folder(out)
    write_index(out, write_shard(out, "audio-00000.npy", utterances()))


def join(out: Path, corpora: list[Path]) -> None:
    """Links the audio of several corpora into a new one and writes their common index."""
    make_folder(out)
    lines, ids = [], set()
    for number, folder in enumerate(corpora):
        entries = read_index(folder)
        if again := ids & {entry["id"] for entry in entries}:
            raise SystemExit(f"{folder} has {sorted(again)[0]} of an earlier corpus again")
        ids |= {entry["id"] for entry in entries}
        for shard in sorted({entry["shard"] for entry in entries}):
            (out / f"{number}-{shard}").symlink_to((folder / shard).resolve())
        for entry in entries:
            entry["shard"] = f"{number}-{entry['shard']}"
            lines.append(json.dumps(entry, ensure_ascii=False) + "\n")
    write_index(out, lines)


def select(texts: Path, out: Path, hours: float | None, skip_hours: float = 0.0) -> list[dict]:
    """Writes and returns the texts that make about `hours` after the first `skip_hours`, or all."""
    chosen, seconds = [], 0.0
    with texts.open(encoding="utf-8") as lines:
        for line in lines:
            if hours is not None and seconds >= 3600 * (skip_hours + hours):
                break
            row = json.loads(line)
            if seconds >= 3600 * skip_hours:
                chosen.append(row)
            seconds += 0.35 + 0.0504 * len(row["phonemes"]) / row["speed"]
    seconds -= 3600 * skip_hours
    if not chosen:
        raise SystemExit(f"{texts} has no text after {skip_hours} h")
    with out.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in chosen)
    print(f"{len(chosen)} texts, about {seconds / 3600:.1f} h", flush=True)
    return chosen


def synthesize(
    teacher: Path, texts: Path, voices: set[str], out: Path, processes: int
) -> list[Path]:
    """Runs speak.py in `processes` processes. → their output folders"""
    blended = out / "teacher"
    blended.mkdir()
    for file in teacher.iterdir():
        if file.name != "voices.safetensors":
            (blended / file.name).symlink_to(file.resolve())
    write_with_blends(teacher / "voices.safetensors", blended / "voices.safetensors", voices)
    folders = [out / f"raw-{part}" for part in range(processes)]
    command = [sys.executable, teacher / "speak.py", blended, texts]
    running = [
        subprocess.Popen([*command, folder, "--durations", "--part", f"{part}/{processes}"])
        for part, folder in enumerate(folders)
    ]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise SystemExit("speak.py failed: see above")
    return folders


@dataclass
class RawShard:
    """A file of speak.py with its rows and their measurements."""

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
            # Symbols that are not in the teacher's vocabulary have no duration.
            row["phonemes"] = "".join(sign for sign in row["phonemes"] if sign in vocabulary)
            path = folder / row["shard"]
            shards.setdefault(path, RawShard(path, [])).rows.append(row)
    return list(shards.values())


def measure_shard(shard: RawShard) -> RawShard:
    """Adds the trimming and the level of each clip."""
    clips = shard.clips()
    durations = [row["durations"] for row in shard.rows]
    cuts = [cut_silence(*clip) for clip in zip(clips, durations, strict=True)]
    return RawShard(shard.path, shard.rows, cuts, [speech_level(clip) for clip in clips])


def voice_gains(shards: list[RawShard]) -> dict[str, float]:
    """The gain in dB that brings the median of each voice to the target level."""
    levels = defaultdict(list)
    for shard in shards:
        for row, level in zip(shard.rows, shard.levels, strict=True):
            levels[row["voice"]].append(level)
    return {voice: TARGET - statistics.median(found) for voice, found in levels.items()}


def median_rates(shards: list[RawShard]) -> dict[str, float]:
    """The median samples per phoneme of each accent."""
    rates = defaultdict(list)
    for shard in shards:
        for row, cut in zip(shard.rows, shard.cuts, strict=True):
            rates[row["lang"]].append(_samples_per_phoneme(row, cut))
    return {accent: statistics.median(found) for accent, found in rates.items()}


def _samples_per_phoneme(row: dict, cut: Cut) -> float:
    return (cut.end - cut.begin) * row["speed"] / len(row["phonemes"])


def write_clean_shard(
    shard: RawShard, name: str, out: Path, gains: dict[str, float], rates: dict[str, float]
) -> list[str]:
    """Writes the valid clips of a raw shard and deletes it. → lines of the index"""

    def is_valid(row: dict, cut: Cut, level: float) -> bool:
        rate = _samples_per_phoneme(row, cut) / rates[row["lang"]]
        steady = len(row["phonemes"]) < SHORT or RATE_RATIO[0] < rate < RATE_RATIO[1]
        return level > MIN_LEVEL and steady

    clips = zip(shard.rows, shard.clips(), shard.cuts, shard.levels, strict=True)
    lines = write_shard(
        out,
        name,
        (
            (row | {"durations": cut.durations}, cut_clip(clip, cut, gains[row["voice"]]))
            for row, clip, cut, level in clips
            if is_valid(row, cut, level)
        ),
    )
    shard.path.unlink()
    return lines


def write_spoken(
    teacher: Path,
    texts: Path,
    out: Path,
    hours: float | None,
    processes: int,
    skip_hours: float = 0.0,
) -> None:
    """Runs the whole stage: synthesis, trimming, filtering and level normalization."""
    started = time.monotonic()
    make_folder(out)
    rows = select(texts, out / "texts.jsonl", hours, skip_hours)
    voices = {row["voice"] for row in rows}
    folders = synthesize(teacher, out / "texts.jsonl", voices, out, processes)
    synthesized = time.monotonic()
    vocabulary = json.loads((teacher / "vocab.json").read_text("utf-8"))
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("spawn")) as pool:
        shards = list(pool.map(measure_shard, raw_shards(folders, vocabulary)))
        process = partial(
            write_clean_shard, out=out, gains=voice_gains(shards), rates=median_rates(shards)
        )
        names = [f"audio-{number:05d}.npy" for number in range(len(shards))]
        lines = [line for found in pool.map(process, shards, names) for line in found]
    write_index(out, lines)
    for folder in (*folders, out / "teacher"):
        shutil.rmtree(folder)
    report(out, dropped=len(rows) - len(lines))
    now = time.monotonic()
    print(
        f"{synthesized - started:.0f} s to synthesize, {now - synthesized:.0f} s to process",
        flush=True,
    )


def report(out: Path, dropped: int) -> None:
    """Prints hours by language."""
    hours, clips = defaultdict(float), defaultdict(int)
    for entry in read_index(out):
        hours[entry["lang"]] += entry["samples"] / RATE / 3600
        clips[entry["lang"]] += 1
    for accent in sorted(hours):
        print(f"{accent:6s} {clips[accent]:7d} clips {hours[accent]:7.2f} h")
    print(f"all    {sum(clips.values()):7d} clips {sum(hours.values()):7.2f} h, {dropped} dropped")


def main(arguments: list[str]) -> None:
    if arguments[:1] == ["synthetic"]:
        parser = command_parser("corpus synthetic", write_synthetic.__doc__, "out")
        write_synthetic(parser.parse_args(arguments[1:]).out)
        return
    if arguments[:1] == ["join"]:
        parser = command_parser("corpus join", join.__doc__, "out")
        parser.add_argument("corpora", type=Path, nargs="+")
        join(**vars(parser.parse_args(arguments[1:])))
        return
    parser = command_parser("corpus", __doc__, "teacher", "texts", "out")
    parser.add_argument("--hours", type=float, help="use about so many hours of the texts")
    parser.add_argument(
        "--skip-hours", type=float, default=0.0, help="of the texts, for an earlier corpus"
    )
    parser.add_argument("--processes", type=int, default=2, help="processes that share the GPU")
    write_spoken(**vars(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
