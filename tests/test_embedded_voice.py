"""The model in the package speaks: a recogniser hears what it was asked to say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
import soxr

import nightingale
from nightingale.checkpoint import embedded_model
from train.metrics import word_errors

from .command import PATIENCE, run

pytestmark = [
    pytest.mark.skipif(embedded_model() is None, reason="the package carries no model"),
    pytest.mark.slow,
]

SENTENCES = (  # of the Harvard ones, on which it was not trained
    "Kick the ball straight and follow through.",
    "Help the woman get back to her feet.",
    "A pot of tea helps to pass the evening.",
    "The fish twisted and turned on the bent hook.",
    "The boy was there when the sun rose.",
    "Her purse was full of useless trash.",
    "Take the winding path to reach the lake.",
    "The young girl gave no clear response.",
    "A king ruled the state in the early days.",
    "The frosty air passed through the coat.",
)
# Measured: 0.013 and 9, in the default voice.
MOST_WORD_ERRORS = 0.05  # of all words
LEAST_EXACT = 8  # sentences of the ten
# Seconds of silence about a clip: of one that begins at once this recogniser hears "1." or nothing,
# or a "you" before it, whoever speaks.
SILENCE = 0.5
MOST_BYTES = 40e6


@pytest.fixture(scope="module")
def tts(device: str) -> nightingale.TTS:
    return nightingale.load(device=device)


@pytest.fixture(scope="module")
def hear() -> Callable[[nightingale.Audio], str]:
    """What Moonshine's smallest English model takes a clip to say."""
    reason = 'hearing needs moonshine-voice: pip install "nightingale-tts[hear]"'
    moonshine = pytest.importorskip("moonshine_voice", reason=reason)
    model = Path(moonshine.__file__).parent / "assets" / "tiny-en"
    recogniser = moonshine.Transcriber(model_path=str(model), model_arch=moonshine.ModelArch.TINY)

    def words(audio: nightingale.Audio) -> str:
        sound = np.pad(audio.samples, round(SILENCE * audio.sample_rate))
        sound = soxr.resample(sound, audio.sample_rate, 16000)
        heard = recogniser.transcribe_without_streaming(sound.tolist(), 16000)
        return plain(" ".join(line.text for line in heard.lines))

    return words


def plain(text: str) -> str:
    """Words alone."""
    return " ".join(re.findall(r"[a-z']+", text.lower()))


def test_its_words_are_understood(
    tts: nightingale.TTS, hear: Callable[[nightingale.Audio], str]
) -> None:
    said = [plain(sentence) for sentence in SENTENCES]
    heard = [hear(tts.generate(sentence)) for sentence in SENTENCES]
    pairs = list(zip(said, heard, strict=True))
    errors = sum(word_errors(*pair) for pair in pairs)
    missed = [pair for pair in pairs if pair[0] != pair[1]]
    assert errors <= MOST_WORD_ERRORS * sum(len(text.split()) for text in said), missed
    assert len(SENTENCES) - len(missed) >= LEAST_EXACT, missed


def test_a_converted_recording_has_the_words_in_the_other_voice(
    tts: nightingale.TTS, hear: Callable[[nightingale.Audio], str]
) -> None:
    source, target = "af_heart", "am_michael"
    errors = words = 0
    for sentence in SENTENCES[:3]:
        spoken = tts.generate(sentence, voice=source)
        audio = tts.convert(spoken.samples, sample_rate=spoken.sample_rate, voice=target)
        assert abs(audio.duration - spoken.duration) <= 0.04
        errors += word_errors(plain(sentence), hear(audio))
        words += len(sentence.split())
        baked = tts.bake_voice(audio.samples, audio.sample_rate).speaker_emb
        likeness = [float(baked @ tts._voice(voice).speaker_emb) for voice in (target, source)]
        assert likeness[0] > likeness[1] + 0.2, sentence  # cosines; measured: 0.84 and 0.46
    assert errors <= 2, f"{errors} of {words} words"  # measured: none


def test_a_mix_of_two_voices_is_understood_and_sounds_like_neither(
    tts: nightingale.TTS, hear: Callable[[nightingale.Audio], str]
) -> None:
    pair = [tts._voice(name) for name in ("bf_emma", "bm_george")]
    mixed = pair[0].mixed(pair[1], 0.5)
    errors, sounds = 0, []
    for sentence in SENTENCES[:3]:
        audio = tts.generate(sentence, voice=mixed, seed=1)
        errors += word_errors(plain(sentence), hear(audio))
        sounds.append(audio.samples)
    assert errors <= 2  # measured: none
    spoken = tts.bake_voice(np.concatenate(sounds), 24000).speaker_emb
    likeness = [float(spoken @ voice.speaker_emb) for voice in pair]
    # Cosines; measured: 0.78 and 0.80. A voice's own are 0.99, and 0.43 to the other.
    assert all(0.6 < each < 0.92 for each in likeness), likeness


@pytest.mark.parametrize("text", ["Hi.", "Yes.", "42."])
def test_the_shortest_texts_come_out(tts: nightingale.TTS, text: str) -> None:
    audio = tts.generate(text)
    assert 0.2 < audio.duration < 3
    assert np.abs(audio.samples).max() > 0.05


def test_words_are_timed_in_their_order(tts: nightingale.TTS) -> None:
    audio = tts.generate(SENTENCES[0])
    assert [word.text for word in audio.words] == SENTENCES[0].rstrip(".").split()
    starts = [word.start for word in audio.words]
    assert starts == sorted(starts)
    assert audio.words[-1].end <= audio.duration


def test_it_is_small_and_speaks_five_languages_in_twelve_voices(tts: nightingale.TTS) -> None:
    files = [path for path in embedded_model().rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES
    assert set(tts.languages) >= {"en", "es", "fr", "it", "pt"}
    assert len(tts.voices) == 13  # the default one is one of the twelve
    assert tts.info["bakes_voices"]
    assert (embedded_model() / "MODEL_CARD.md").is_file()


COLD = """
import socket, sys

def refuse(*args):
    raise AssertionError("a network was asked for")

socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
from nightingale.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_first_command_speaks_without_a_network(tmp_path: Path) -> None:
    """And without a home, settings or anything left by an earlier run."""
    homes = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME")}
    command = [sys.executable, "-c", COLD, "say", SENTENCES[0], "-o", "hello.wav"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=tmp_path,
        env=os.environ | homes,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert soundfile.info(tmp_path / "hello.wav").duration > 1


def test_the_same_seed_gives_the_same_sound_in_any_process(tmp_path: Path) -> None:
    def digest(*options: str) -> str:
        file = str(tmp_path / "hello.wav")
        done = run("say", SENTENCES[0], "-o", file, "--json", "--device", "cpu", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["sha256"]

    first = digest("--seed", "7")
    assert digest("--seed", "7") == first
    assert digest("--seed", "7", "--threads", "1") == first
    assert digest("--seed", "8") != first
