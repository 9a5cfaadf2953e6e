"""Plots one sentence: waveform with its words, mel, and the F0 that the vocoder predicts."""

import textwrap
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from .._core import Error
from ..atomic_files import atomic_path
from ..audio import Audio
from ..options import SpeechOptions
from ..text.segments import prepare
from ..tts import TTS
from .log_mel import hertz_to_band

FORMATS = (".png", ".svg", ".pdf")
FRAMES_PER_SECOND = 50
VOICED = 10.0  # Hz, above which the vocoder makes harmonics
COLUMNS = 2400  # of the waveform's outline
WORD_ROWS = 3  # in which labels take turns
MEL_TICKS = (100, 500, 1000, 2000, 4000, 7500)  # Hz
INK, SOFT, LINE = "#1d2433", "#6b7280", "#d9d4c8"
WAVE, PITCH = "#2f6f5e", "#b4532a"


def check(path: Path) -> None:
    """Raises before any work is done if the file format or matplotlib is not available."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"{path.name} must end in one of {', '.join(FORMATS)}")
    _figure_class()


def draw(tts: TTS, text: str, options: SpeechOptions, path: Path) -> None:
    """Plots the first segment of a text, generated without streaming, to a file."""
    segments = prepare(text, options.language)
    sentence = next((segment.text for segment in segments if segment.text), text)
    audio = tts.generate(sentence, options)
    mel = tts.mel(audio.tokens, options.voice, steps=options.steps, seed=options.seed)
    _, vocoder = tts._engine.s3gen()
    pitch = vocoder.pitch(np.ascontiguousarray(mel.T))
    info = tts.info
    title = f"{info['family']} on {info['device']}, {info['t3']['dtype']}, seed {options.seed}"
    figure = picture(sentence, title, audio, mel, pitch, options.speed)
    # A font that lacks a glyph draws a box, and matplotlib warns of each.
    with warnings.catch_warnings(), atomic_path(path) as partial:
        warnings.simplefilter("ignore")
        figure.savefig(partial, format=path.suffix.lstrip(".").lower(), dpi=150)


def picture(
    sentence: str, title: str, audio: Audio, mel: np.ndarray, pitch: np.ndarray, speed: float
) -> Any:
    """The matplotlib figure. mel: [80, frames], pitch: [frames] in Hz, 50 frames a second."""
    figure = _figure_class()(figsize=(12, 7.5), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=(1.25, 2, 1.1), width_ratios=(1, 0.012))
    wave_axes = figure.add_subplot(grid[0, 0])
    mel_axes = figure.add_subplot(grid[1, 0], sharex=wave_axes)
    pitch_axes = figure.add_subplot(grid[2, 0], sharex=wave_axes)
    seconds = mel.shape[1] / FRAMES_PER_SECOND / speed
    _draw_wave(wave_axes, audio)
    image = _draw_mel(mel_axes, mel, seconds)
    _draw_pitch(pitch_axes, pitch, seconds)
    bar = figure.colorbar(image, cax=figure.add_subplot(grid[1, 1]))
    bar.set_label("log magnitude", color=INK)
    bar.outline.set_visible(False)
    for axes in (wave_axes, mel_axes):
        axes.tick_params(labelbottom=False)
    for axes in (wave_axes, mel_axes, pitch_axes):
        axes.spines[["top", "right"]].set_visible(False)
    wave_axes.set_xlim(0, max(seconds, audio.duration))
    pitch_axes.set_xlabel("seconds")
    spoken = textwrap.shorten(sentence, 110, placeholder=" …")
    figure.suptitle(spoken, fontsize=14, color=INK, parse_math=False)
    details = f"{title}; {len(audio.tokens)} tokens, {audio.duration:.2f} s"
    wave_axes.set_title(details, fontsize=9, color=SOFT, loc="left", pad=8)
    return figure


def _draw_wave(axes: Any, audio: Audio) -> None:
    samples = audio.samples
    edges = np.linspace(0, len(samples), min(COLUMNS, len(samples)) + 1).astype(int)[:-1]
    lower, upper = np.minimum.reduceat(samples, edges), np.maximum.reduceat(samples, edges)
    times = edges / audio.sample_rate
    axes.fill_between(times, lower, upper, color=WAVE, linewidth=0.4)
    limit = max(0.1, 1.1 * float(np.abs(samples).max(initial=0)))
    room = 0.22 * WORD_ROWS * limit if audio.words else 0
    axes.set_ylim(-limit, limit + room)
    axes.set_yticks([-round(limit / 1.1, 2), 0, round(limit / 1.1, 2)])
    axes.axhline(0, color=INK, linewidth=0.4)
    axes.set_ylabel("amplitude")
    for number, (word, start, end, *_) in enumerate(audio.words):
        axes.axvline(start, color=LINE, linewidth=0.8, zorder=0)
        height = limit + room * (1 - (number % WORD_ROWS + 0.5) / WORD_ROWS)
        axes.annotate(
            word,
            ((start + end) / 2, height),
            ha="center",
            va="center",
            fontsize=8,
            color=INK,
            parse_math=False,
        )


def _draw_mel(axes: Any, mel: np.ndarray, seconds: float) -> Any:
    low, high = np.percentile(mel, [1, 99.8])
    image = axes.imshow(
        mel,
        origin="lower",
        aspect="auto",
        extent=(0, seconds, -0.5, len(mel) - 0.5),
        cmap="magma",
        vmin=low,
        vmax=high,
        interpolation="nearest",
    )
    axes.set_yticks([hertz_to_band(tick) for tick in MEL_TICKS], [f"{t:,}" for t in MEL_TICKS])
    axes.set_ylabel("mel band, Hz")
    return image


def _draw_pitch(axes: Any, pitch: np.ndarray, seconds: float) -> None:
    times = (np.arange(len(pitch)) + 0.5) * seconds / max(1, len(pitch))
    voiced = np.where(pitch > VOICED, pitch, np.nan)
    axes.plot(times, voiced, color=PITCH, linewidth=1.2, marker=".", markersize=2.5)
    axes.set_ylim(0, max(100.0, 1.1 * float(np.nanmax(voiced, initial=0))))
    axes.grid(axis="y", color=LINE, linewidth=0.6)
    axes.set_ylabel("F0, Hz")
    share = float(np.mean(pitch > VOICED)) if len(pitch) else 0.0
    axes.set_title(f"voiced {share:.0%}", fontsize=9, color=SOFT, loc="right", pad=3)


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise Error(
            f'drawing needs the package matplotlib ({error}): pip install "nightingale-tts[plot]"'
        ) from error
    return Figure
