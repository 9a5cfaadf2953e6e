"""The error budget: which stage of a model loses words and naturalness.

    python -m train.budget MODEL OUT --data DATA --judge JUDGE [--teacher TEACHER]
                           [--flow-model FOLDER] [--tokenizer FILE]
                           [--language en] [--sentences 200]

Each row of the table has other stages of the model between the teacher and the judge, on the first
sentences of the evaluation in a language. --flow-model is the same model with the flow that is not
distilled (train.export --flow flow); without it MODEL's own flow takes the ten steps. --tokenizer
is the speech_tokenizer.safetensors of a training run, with its heads beside it; without it the row
of its decoder is left out. OUT may be the folder of train.evaluate, whose clips and scores are then
used; clips in OUT are not made again, so use a new folder for another MODEL.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import soundfile
import torch
from torch import Tensor

import nightingale

from .clips import RATE
from .evaluate import rows_to_speak
from .evaluation_sentences import LANGUAGES
from .export import FLOWS
from .features import mel_24k
from .metrics import RECOGNIZERS, error_rate, judge
from .networks.speech_tokenizer import SpeechTokenizer
from .networks.tokenizer_heads import HeadsSize, MelDecoder
from .options import command_parser
from .speech_tokenizer import HEADS, PREFIX, encode_without_repeats, load_tokenizer
from .state import load_stage, write_json
from .synthesis import Student, Teacher
from .tokenizer_objective import tokenizer_inputs
from .unpack import read_floats, tokenizer_size

STEPS = 10
ROWS = {
    "teacher": "the teacher",
    "vocoder": "its mel, vocoder",
    "flow-10": f"its tokens, flow in {STEPS} steps, vocoder",
    "flow": "its tokens, flow as shipped, vocoder",
    "decoder": "its tokens, the tokenizer's own decoder, vocoder",
    "student": "T3's tokens, flow as shipped, vocoder",
}

# From a row of the evaluation and the teacher's clip, [n] at 24 kHz, to audio.
Resynthesis = Callable[[dict, Tensor], np.ndarray]


def copy_synthesis(tts: nightingale.TTS, row: dict, wave: Tensor) -> np.ndarray:
    return tts.vocode(mel_24k(wave[None])[0].T.numpy())


def through_flow(
    tts: nightingale.TTS,
    tokenizer: SpeechTokenizer,
    steps: int | None,
    row: dict,
    wave: Tensor,
) -> np.ndarray:
    (tokens,) = encode_without_repeats(tokenizer, wave[None], torch.tensor([len(wave)]))
    voice = row["voice"] if row["voice"] in tts.voices else None
    return tts.synthesize(tokens.numpy().astype(np.int32), voice, steps=steps).samples


class TokenizerDecoder:
    """A speech tokenizer of a training run with the decoder that it was trained with."""

    def __init__(self, path: Path) -> None:
        tensors, facts = load_stage(path.with_name(f"{HEADS}.safetensors"))
        self._tokenizer, self._decoder = load_tokenizer(path), mel_decoder(tensors)
        self._voices: list[str] = facts["voices"]

    @torch.inference_mode()
    def mel(self, voice: str, wave: Tensor) -> Tensor:
        """wave: [n] → [frames, 80]"""
        if voice not in self._voices:
            raise SystemExit(f"the tokenizer's decoder was not trained on the voice {voice}")
        code = self._tokenizer(*tokenizer_inputs(wave[None], torch.tensor([len(wave)])))
        speaker = torch.tensor([self._voices.index(voice)])
        return self._decoder(code.digits.round(), code.mask, speaker)[0][0]


def mel_decoder(heads: dict[str, Tensor]) -> MelDecoder:
    """The mel decoder among the heads of a tokenizer."""
    prefix = "mel."
    own = {name.removeprefix(prefix): x for name, x in heads.items() if name.startswith(prefix)}

    def blocks(kind: str) -> int:
        return len({name.split(".")[1] for name in own if name.startswith(f"{kind}.")})

    width = own["entry.weight"].shape[0]
    size = HeadsSize(
        width, token_blocks=blocks("tokens"), frame_blocks=blocks("frames"), text_blocks=0
    )
    decoder = MelDecoder(size, len(own["speaker.weight"]), len(own["pitch.weight"]))
    decoder.load_state_dict(own)
    return decoder.eval()


def through_decoder(
    tts: nightingale.TTS, decoder: TokenizerDecoder, row: dict, wave: Tensor
) -> np.ndarray:
    return tts.vocode(decoder.mel(row["voice"], wave).T.numpy())


def tokenizer_of(model: Path) -> SpeechTokenizer:
    """The speech tokenizer of a checkpoint, in float32."""
    path = next(model / file for file in FLOWS.values() if (model / file).exists())
    tensors = {name: x for name, x in read_floats(path).items() if name.startswith(PREFIX)}
    tokenizer = SpeechTokenizer(tokenizer_size(tensors))
    tokenizer.load_state_dict({name.removeprefix(PREFIX): x for name, x in tensors.items()})
    return tokenizer.eval()


def resyntheses(
    model: Path, flow_model: Path | None, tokenizer: Path | None
) -> dict[str, Resynthesis]:
    """What makes the clips of each row of the table between the teacher and the student."""
    tts, own = nightingale.load(model), tokenizer_of(model)
    slow = nightingale.load(flow_model) if flow_model else tts
    found: dict[str, Resynthesis] = {
        "vocoder": partial(copy_synthesis, tts),
        "flow-10": partial(through_flow, slow, own, STEPS),
        "flow": partial(through_flow, tts, own, None),
    }
    if tokenizer:
        found["decoder"] = partial(through_decoder, tts, TokenizerDecoder(tokenizer))
    return found


def write_clips(
    folder: Path, resynthesis: Resynthesis, rows: list[dict], teacher: dict[str, Path]
) -> dict[str, Path]:
    """Writes the clips that the folder does not have yet. → WAV files by id"""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {row["id"]: folder / f"{row['id']}.wav" for row in rows}
    for row in rows:
        if not paths[row["id"]].exists():
            wave, _ = soundfile.read(teacher[row["id"]], dtype="float32")
            made = resynthesis(row, torch.from_numpy(wave))
            soundfile.write(paths[row["id"]], np.clip(made, -1, 1), RATE)
    return paths


def measure(
    rows: list[dict],
    clips: dict[str, dict[str, Path]],
    judge_folder: Path,
    kept: Path,
) -> dict[str, dict]:
    """The scores of the clips, by row of the table and id of the sentence."""
    budget = {}
    for name in (name for name in ROWS if name in clips):
        given = {
            f"{name}/{row['id']}": (clips[name][row["id"]], row["language"], row["text"])
            for row in rows
        }
        scores = list(judge(given, judge_folder, kept).values())
        budget[name] = {
            "stages": ROWS[name],
            "sentences": len(scores),
            **{f"wer_{recognizer}": error_rate(scores, recognizer) for recognizer in RECOGNIZERS},
            "mos": round(statistics.mean(row["mos"] for row in scores), 3),
        }
    return budget


def markdown(budget: dict[str, dict]) -> str:
    lines = [
        "| | sentences | WER Whisper % | WER Moonshine % | DistillMOS |",
        "|---|---|---|---|---|",
    ]
    keys = ("stages", "sentences", *(f"wer_{name}" for name in RECOGNIZERS), "mos")
    for row in budget.values():
        cells = ("" if row[key] is None else str(row[key]) for key in keys)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> None:
    parser = command_parser("budget", __doc__, "model", "out")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--judge", type=Path, required=True)
    parser.add_argument("--teacher", type=Path)
    parser.add_argument("--flow-model", type=Path, help="with the flow that is not distilled")
    parser.add_argument("--tokenizer", type=Path, help="weights of a training run")
    parser.add_argument("--language", choices=LANGUAGES, default="en")
    parser.add_argument("--sentences", type=int, default=200)
    options = parser.parse_args(arguments)
    if options.sentences < 1:
        parser.error(f"--sentences must be at least 1, not {options.sentences}")
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    every = rows_to_speak(options.data)
    rows = [row for row in every if row["set"] == options.language][: options.sentences]
    teacher = Teacher(out, options.teacher).synthesize(rows)
    clips = {"teacher": teacher}
    makers = resyntheses(options.model, options.flow_model, options.tokenizer)
    for name, resynthesis in makers.items():
        clips[name] = write_clips(out / name, resynthesis, rows, teacher)
        print(f"{len(rows)} clips: {ROWS[name]}", flush=True)
    student = Student(out, options.model)
    clips["student"] = {row["id"]: student.synthesize(row) for row in rows}
    budget = measure(rows, clips, options.judge, out / "scores.jsonl")
    write_json(out / f"budget-{options.language}.json", budget)
    (out / f"budget-{options.language}.md").write_text(markdown(budget), encoding="utf-8")
    print(markdown(budget))


if __name__ == "__main__":
    main(sys.argv[1:])
