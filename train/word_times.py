"""The errors of a model's word times against the teacher's durations.

    python -m train.word_times MODEL EVALUATION [--sentences 50]

EVALUATION is the output folder of train.evaluate, with the teacher's clips. MODEL's own speech
tokenizer encodes each of its first English sentences, T3 is forced to these tokens, and the word
starts of its alignment are compared with the teacher's. All of it runs in the core, as in
synthesis.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nightingale
from nightingale import _core
from nightingale.word_times import TOKENS_PER_SECOND

from .alignment import spoken_words
from .clips import RATE, cut_silence, read_index
from .options import command_parser

SECONDS = (1.5, 10.0)  # of a clip: the prompt of a voice has at most 10 s
CHOSEN = "en-en-"  # prefix of the ids of the sentences


@dataclass(frozen=True)
class TeacherClip:
    """A sentence of the teacher."""

    text: str
    voice: str
    clip: np.ndarray  # [n] int16
    starts: np.ndarray  # [words] seconds


def teacher_clips(evaluation: Path) -> Iterator[TeacherClip]:
    """The teacher's clips of the chosen sentences, trimmed, of suitable lengths."""
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
                yield TeacherClip(row["text"], row["voice"], clip, starts)


def model_starts(tts: nightingale.TTS, said: TeacherClip) -> np.ndarray:
    """The start of each word by the model's alignment, in seconds; the end for words that are not
    reached. T3 uses the clip's own voice if the model has it."""
    tokens = tts.bake_voice(said.clip, RATE).prompt_token
    voice = tts._voice(said.voice if said.voice in tts.voices else None)
    text, words, word_of, _ = tts._tokenizer.encode_words(said.text, "en")
    times = _core.WordTimes(len(words), word_of)
    times.set_positions(tts._engine.text_positions(text, tokens, voice))
    end = len(tokens) / TOKENS_PER_SECOND
    starts = [start for _, start, _ in times.take_rest(end)]
    return np.array(starts + [end] * (len(words) - len(starts)))


def measure(tts: nightingale.TTS, evaluation: Path, sentences: int) -> dict[str, float]:
    """Errors of the word starts in seconds, over the first `sentences` whose text has as many words
    as the teacher's phonemes."""
    errors: list[np.ndarray] = []
    for said in teacher_clips(evaluation):
        if len(errors) == sentences:
            break
        starts = model_starts(tts, said)
        if len(starts) == len(said.starts):
            errors.append(np.abs(starts - said.starts))
    if not errors:
        raise SystemExit(f"{evaluation} has no suitable sentence of the teacher")
    every = np.concatenate(errors)
    median, most = np.quantile(every, (0.5, 0.9)).tolist()
    return {"sentences": len(errors), "words": len(every), "median": median, "nine_in_ten": most}


def main(arguments: list[str]) -> None:
    parser = command_parser("word_times", __doc__, "model", "evaluation")
    parser.add_argument("--sentences", type=int, default=50)
    options = parser.parse_args(arguments)
    logging.getLogger("nightingale.recording").setLevel(logging.ERROR)  # clips are short
    found = measure(nightingale.load(options.model), options.evaluation, options.sentences)
    print(
        f"{found['words']} words of {found['sentences']} sentences: errors of the word starts "
        f"{1000 * found['median']:.0f} ms (median), {1000 * found['nine_in_ten']:.0f} ms (90 %)"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
