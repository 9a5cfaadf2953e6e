"""Logits, mel and sound beside those of chatterbox-tts for the same checkpoint and noise."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from ..engine import FRAME_SAMPLES, HARMONICS, MELS
from ..streaming import FRAMES_PER_TOKEN
from ..tts import TTS
from ..voice import Voice
from .log_mel import correlation
from .report import Result, skipped

SCRIPT = Path(__file__).with_name("reference_process.py")
TOKENS = 50  # of speech that is compared: 2 s
START_SPEECH = 6561
LOGITS_ERROR = 2e-4  # of the largest logit
MEL_ERROR = 1e-3
LEAST_SNR = 60.0  # dB
# In half precision only these can be asked for.
LOGITS_CORRELATION = 0.999
MEL_CORRELATION = 0.99

Arrays = dict[str, np.ndarray]


def find_reference() -> str | None:
    """This Python, where it has chatterbox-tts."""
    found = all(importlib.util.find_spec(name) for name in ("torch", "chatterbox"))
    return sys.executable if found else None


def compare(
    tts: TTS, python: str | None, text_tokens: np.ndarray, tokens: np.ndarray, voice: Voice
) -> list[Result]:
    """Runs both sides; tokens: what is said, of which the first 2 s count."""
    if python is None:
        return [
            skipped("parity", "no reference: give --reference PYTHON, which has chatterbox-tts")
        ]
    request = _request(tts, text_tokens, tokens[:TOKENS], voice)
    ours = _ours(tts, request, voice)
    request["vocoded_mel"] = ours["mel"]
    try:
        theirs = run_reference(python, request)
    except (RuntimeError, OSError) as error:
        reason = f"the reference did not run: {error}"
        return [Result("parity", reason, "it runs", False, {"reason": reason})]
    flow_dtype = tts.info["flow"]["dtype"]
    return [
        same_logits(ours["logits"], theirs["logits"], tts.info["t3"]["dtype"]),
        same_mel(ours["mel"], theirs["mel"], flow_dtype),
        same_samples(ours["samples"], theirs["samples"]),
    ]


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
    """The vocoder's sound of one mel, from the same phases and noise."""
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


def _request(tts: TTS, text_tokens: np.ndarray, tokens: np.ndarray, voice: Voice) -> Arrays:
    draws = np.random.default_rng(0)
    frames = FRAMES_PER_TOKEN * (len(voice.prompt_token) + len(tokens)) - len(voice.prompt_feat)
    phase = draws.uniform(-np.pi, np.pi, HARMONICS).astype(np.float32)
    phase[0] = 0
    request = {
        "t3": np.array(str(tts._checkpoint.t3.resolve())),
        "s3gen": np.array(str(tts._checkpoint.s3gen.resolve())),
        "text_tokens": text_tokens,
        "speech_tokens": np.r_[START_SPEECH, tokens].astype(np.int32),
        "steps": np.array(tts._engine.steps()),
        "mel_noise": draws.standard_normal((MELS, len(voice.prompt_feat) + frames), np.float32),
        "phase": phase,
        "source_noise": draws.standard_normal((HARMONICS, FRAME_SAMPLES * frames), np.float32),
        "speaker_emb": voice.speaker_emb,
        "emotion_adv": np.array(voice.emotion_adv),
        "prompt_token": voice.prompt_token,
        "prompt_feat": voice.prompt_feat,
        "embedding": voice.embedding,
    }
    if voice.cond_prompt_speech_tokens is not None:
        request["cond_prompt_speech_tokens"] = voice.cond_prompt_speech_tokens
    return request


def _ours(tts: TTS, request: Arrays, voice: Voice) -> Arrays:
    speech = request["speech_tokens"]
    mel = tts.mel(speech[1:], voice, noise=request["mel_noise"])
    return {
        "logits": tts.t3_logits(request["text_tokens"], speech, voice),
        "mel": mel,
        "samples": tts.vocode(mel, phase=request["phase"], noise=request["source_noise"]),
    }


def run_reference(python: str, request: Arrays) -> Arrays:
    """What the reference makes of a request, in a process of its own Python."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "request.npz"), Path(folder, "out.npz")
        np.savez(asked, **request)
        # -I: modules beside the script must not stand in for those of its packages.
        command = [python, "-I", str(SCRIPT), str(asked), str(answered)]
        done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            raise RuntimeError(lines[-1])
        with np.load(answered) as found:
            return dict(found)
