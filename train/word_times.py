"""How far a model's word times are from the teacher's durations.

    python -m train.word_times MODEL EVALUATION [--sentences 50]

EVALUATION is the folder that train.evaluate wrote to, with what the teacher said. Each of its first
English sentences is heard by MODEL's own speech tokenizer, T3 is made to say just these tokens, and
the words' starts that its alignment then gives are set against the teacher's. All of it runs in the
core, as when a model is used.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nightingale
from nightingale.word_times import TOKENS_PER_SECOND, WordTimes

from .alignment import spoken_words
from .clips import RATE, cut_silence
from .shards import read_index

SECONDS = (1.5, 10.0)  # of a clip: what is heard as the prompt of a voice ends after ten
CHOSEN = "en-en-"  # how the ids of the sentences begin


@dataclass(frozen=True)
class Spoken:
    """A sentence of the teacher's."""

    text: str
    voice: str
    clip: np.ndarray  # [n] int16
    starts: np.ndarray  # [words] seconds


def teachers(evaluation: Path) -> Iterator[Spoken]:
    """What the teacher said of the chosen sentences, silence cut, of lengths that can be heard."""
    for index in sorted(evaluation.glob("teacher*/index.jsonl")):
        for row in read_index(index.parent):
            if not row["id"].startswith(CHOSEN):
                continue
            sound = np.load(index.parent / row["shard"], mmap_mode="r")
            whole = sound[row["start"] : row["start"] + row["samples"]]
            cut = cut_silence(whole, row["durations"])
            clip = np.asarray(whole[cut.begin : cut.end])
            words = spoken_words(row["phonemes"], cut.durations)
            starts = np.array([start for start, _ in words]) / TOKENS_PER_SECOND
            if SECONDS[0] <= len(clip) / RATE <= SECONDS[1]:
                yield Spoken(row["text"], row["voice"], clip, starts)


def heard_starts(tts: nightingale.TTS, said: Spoken) -> np.ndarray:
    """When each word of a clip begins by the model's alignment, in seconds; a word that it does not
    come to begins at the end. T3 speaks in the clip's own voice, where the model has it."""
    tokens = tts.bake_voice(said.clip, RATE).prompt_token
    voice = tts._voice(said.voice if said.voice in tts.voices else None)
    text, words, word_of = tts._tokenizer.encode_words(said.text, "en")
    times = WordTimes(words, word_of)
    for position in tts._engine.text_positions(text, tokens, voice):
        times.add_token(position)
    end = len(tokens) / TOKENS_PER_SECOND
    starts = [start for _, start, _ in times.take_rest(end)]
    return np.array(starts + [end] * (len(words) - len(starts)))


def measure(tts: nightingale.TTS, evaluation: Path, sentences: int) -> dict[str, float]:
    """Errors of the words' starts, in seconds, over the first `sentences` that have as many words
    in the text as in the teacher's phonemes."""
    errors: list[np.ndarray] = []
    for said in teachers(evaluation):
        if len(errors) == sentences:
            break
        starts = heard_starts(tts, said)
        if len(starts) == len(said.starts):
            errors.append(np.abs(starts - said.starts))
    if not errors:
        raise SystemExit(f"{evaluation} has no sentence of the teacher's that can be measured")
    every = np.concatenate(errors)
    median, most = np.quantile(every, (0.5, 0.9)).tolist()
    return {"sentences": len(errors), "words": len(every), "median": median, "nine_in_ten": most}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m train.word_times",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("evaluation", type=Path)
    parser.add_argument("--sentences", type=int, default=50)
    given = parser.parse_args(arguments)
    logging.getLogger("nightingale.recording").setLevel(logging.ERROR)  # clips are short
    found = measure(nightingale.load(given.model), given.evaluation, given.sentences)
    print(
        f"{found['words']} words of {found['sentences']} sentences: starts off by "
        f"{1000 * found['median']:.0f} ms (median), {1000 * found['nine_in_ten']:.0f} ms (90 %)"
    )


if __name__ == "__main__":
    main()
