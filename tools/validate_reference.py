"""Compares logits, mel and audio with those of chatterbox-tts for the same checkpoint and noise.

    python -m tools.validate_reference [--model FOLDER] [--reference PYTHON] [--json]

The reference loads the same files, official or synthetic. PYTHON is an interpreter that has
chatterbox-tts (tools/reference/environment.sh makes one). The default is that of the environment
variable NIGHTINGALE_REFERENCE_PYTHON, or this interpreter where it has the package. The exit status
is 1 where a check fails.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

import nightingale
from nightingale.cli import run_command
from nightingale.engine import FRAME_SAMPLES, HARMONICS
from nightingale.networks import FRAMES_PER_TOKEN, MELS
from nightingale.options import DEVICES, DTYPES
from nightingale.validate.log_mel import correlation
from nightingale.validate.report import Result, all_passed, as_json, skipped, table

from .reference.client import find_reference, run_reference

TEXT = "The river rose in the night, and by morning the old bridge was gone."
TOKENS = 50  # of speech that is compared: 2 s
START_SPEECH = 6561
LOGITS_ERROR = 2e-4  # of the largest logit
MEL_ERROR = 1e-3
LEAST_SNR = 60.0  # dB
# Bounds in half precision.
LOGITS_CORRELATION = 0.999
MEL_CORRELATION = 0.99

Arrays = dict[str, np.ndarray]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools.validate_reference", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--model", help="a checkpoint's folder or a hub id (default: embedded)")
    parser.add_argument("--dtype", choices=DTYPES, help="of the weights (default: the file's)")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--reference", metavar="PYTHON", help="an interpreter with chatterbox-tts")
    parser.add_argument("--text", default=TEXT)
    parser.add_argument("--language", default="en", help="code of the text's language")
    parser.add_argument("--voice", help="a voice of the model")
    parser.add_argument("--max-tokens", type=int, default=TOKENS, help="of speech, to compare")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_run)
    return run_command(parser.parse_args(argv))


def _run(args: argparse.Namespace) -> int:
    tts = nightingale.load(args.model, dtype=args.dtype, device=args.device)
    settings = {"language": args.language, "max_tokens": args.max_tokens}
    tokens = tts.speech_tokens(args.text, voice=args.voice, **settings)
    text_tokens = tts.tokenize(args.text, args.language)
    results = compare(tts, args.reference, text_tokens, tokens, tts._voice(args.voice))
    if args.json:
        print(json.dumps({"model": tts.info["model"], **as_json(results)}, ensure_ascii=False))
    else:
        print(table(results))
    return 0 if all_passed(results) else 1


def compare(
    tts: nightingale.TTS,
    python: str | None,
    text_tokens: np.ndarray,
    tokens: np.ndarray,
    voice: nightingale.Voice,
) -> list[Result]:
    """Runs both sides. tokens: the speech to compare."""
    python = python or find_reference()
    if python is None:
        reason = "no reference: give --reference PYTHON, which has chatterbox-tts"
        return [skipped("parity", reason)]
    noise = _noise(len(tokens), voice)
    speech = np.r_[START_SPEECH, tokens].astype(np.int32)
    mel = tts.mel(tokens, voice, noise=noise["mel"])
    jobs = _jobs(tts, voice, text_tokens, speech, noise, mel)
    try:
        theirs = run_reference(jobs, python=python)
    except (RuntimeError, OSError) as error:
        reason = f"the reference did not run: {str(error).splitlines()[-1]}"
        return [Result("parity", reason, "it runs", False, {"reason": reason})]
    samples = tts.vocode(mel, phase=noise["phase"], noise=noise["source"])
    logits = tts.t3_logits(text_tokens, speech, voice)
    return [
        same_logits(logits, theirs["t3/logits"], tts.info["t3"]["dtype"]),
        same_mel(mel, theirs["flow/mel"], tts.info["flow"]["dtype"]),
        same_samples(samples, theirs["vocoder/audio"]),
    ]


def _noise(tokens: int, voice: nightingale.Voice) -> Arrays:
    """What both sides start from. source: [9, samples], mel: [80, prompt frames + frames]"""
    draws = np.random.default_rng(0)
    prompt_frames = len(voice.prompt_feat)
    frames = FRAMES_PER_TOKEN * (len(voice.prompt_token) + tokens) - prompt_frames
    phase = draws.uniform(-np.pi, np.pi, HARMONICS).astype(np.float32)
    phase[0] = 0
    return {
        "phase": phase,
        "mel": draws.standard_normal((MELS, prompt_frames + frames), np.float32),
        "source": draws.standard_normal((HARMONICS, FRAME_SAMPLES * frames), np.float32),
    }


def _jobs(
    tts: nightingale.TTS,
    voice: nightingale.Voice,
    text_tokens: np.ndarray,
    speech: np.ndarray,
    noise: Arrays,
    mel: np.ndarray,
) -> list[dict[str, Any]]:
    t3_voice = {"speaker_emb": voice.speaker_emb, "emotion_adv": float(voice.emotion_adv)}
    if voice.cond_prompt_speech_tokens is not None:
        t3_voice["cond_prompt_speech_tokens"] = voice.cond_prompt_speech_tokens
    t3_job = {
        "name": "t3",
        "kind": "logits",
        "folder": tts._checkpoint.t3,
        "text_tokens": text_tokens,
        "speech_tokens": speech,
        "voice": t3_voice,
    }
    flow_job = {
        "name": "flow",
        "kind": "mel",
        "folder": tts._checkpoint.s3gen,
        "tokens": speech[1:],
        "noise": noise["mel"],
        "steps": tts.info["defaults"]["steps"],
        "prompt_token": voice.prompt_token,
        "prompt_feat": voice.prompt_feat,
        "embedding": voice.embedding,
    }
    vocoder_job = {
        "name": "vocoder",
        "kind": "vocode",
        "folder": tts._checkpoint.s3gen,
        "mel": mel,
        "phase": noise["phase"],
        "noise": noise["source"],
    }
    return [t3_job, flow_job, vocoder_job]


def same_logits(ours: np.ndarray, theirs: np.ndarray, dtype: str) -> Result:
    """Teacher-forced logits of both guidance rows."""
    if ours.shape != theirs.shape:
        return _misshapen("parity: logits", ours, theirs)
    error = float(np.abs(ours - theirs).max() / np.abs(theirs).max())
    return _near("parity: logits", ours, theirs, error, dtype, LOGITS_ERROR, LOGITS_CORRELATION)


def same_mel(ours: np.ndarray, theirs: np.ndarray, dtype: str) -> Result:
    """The flow's frames from the same noise."""
    if ours.shape != theirs.shape:
        return _misshapen("parity: mel", ours, theirs)
    error = float(np.abs(ours - theirs).max())
    return _near("parity: mel", ours, theirs, error, dtype, MEL_ERROR, MEL_CORRELATION)


def same_samples(ours: np.ndarray, theirs: np.ndarray) -> Result:
    """The vocoder's audio of one mel, from the same phases and noise."""
    if ours.shape != theirs.shape:
        return _misshapen("parity: vocoder", ours, theirs)
    signal = theirs.astype(np.float64)
    ratio = np.sum(signal**2) / max(float(np.sum((ours - signal) ** 2)), 1e-300)
    snr = float(10 * np.log10(max(ratio, 1e-30)))
    bound = f">= {LEAST_SNR:.0f} dB"
    return Result("parity: vocoder", f"SNR {snr:.1f} dB", bound, snr >= LEAST_SNR, {"snr_db": snr})


def _near(
    name: str,
    ours: np.ndarray,
    theirs: np.ndarray,
    error: float,
    dtype: str,
    most: float,
    least: float,
) -> Result:
    alike = correlation(ours, theirs)
    exact = dtype == "float32"
    passed = error <= most if exact else alike >= least
    bound = f"error <= {most:g}" if exact else f"correlation >= {least} in {dtype}"
    values = {"error": error, "correlation": alike}
    return Result(name, f"error {error:.1e}, correlation {alike:.7f}", bound, passed, values)


def _misshapen(name: str, ours: np.ndarray, theirs: np.ndarray) -> Result:
    figure = f"shape {list(ours.shape)}"
    return Result(name, figure, f"shape {list(theirs.shape)}", False, {"shape": list(ours.shape)})


if __name__ == "__main__":
    sys.exit(main())
