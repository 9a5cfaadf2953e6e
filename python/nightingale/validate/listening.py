"""A page for blind listening to two models or sets of recordings: one file, no network."""

import base64
import io
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import load
from .._core import Error
from ..atomic_files import atomic_path
from ..checkpoint import holds_model
from ..hub import is_hub_id
from ..option import options_of
from ..options import LoadOptions, SpeechOptions
from ..sound_file import ENDINGS, is_recording
from ..voice_folder import VoiceFolder, default_voice_folder, find_voice

TEMPLATE = Path(__file__).with_name("listening.html")
# What a model of --ab can have of its own.
LOADING = {
    option.name: option for option in options_of(LoadOptions, "cli") if option.kind != "bool"
}
SPEECH = {
    option.name: option
    for option in options_of(SpeechOptions, "cli")
    if option.stage not in ("chunks", "text")
}

Tick = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Clip:
    samples: np.ndarray  # [n, channels]
    sample_rate: int


@dataclass(frozen=True)
class Model:
    """A model to listen to: a checkpoint and its options."""

    model: str
    loading: dict[str, Any]  # fields of LoadOptions
    speech: dict[str, Any]  # fields of SpeechOptions

    def clips(self, texts: Sequence[str], tick: Tick) -> list[Clip]:
        tts = load(self.model, **self.loading)
        options = SpeechOptions(**self.speech)
        if options.voice is not None:
            folder = VoiceFolder(default_voice_folder())
            options = replace(options, voice=find_voice(str(options.voice), tts.voices, folder))
        found = []
        for text in texts:
            tick("speaking")
            audio = tts.generate(text, options)
            found.append(Clip(audio.samples[:, None], audio.sample_rate))
        return found


@dataclass(frozen=True)
class Recordings:
    """Recordings to listen to, in the order of their file names."""

    files: tuple[Path, ...]

    def clips(self, texts: Sequence[str], tick: Tick) -> list[Clip]:
        """The samples of the files; `texts` is not used."""
        import soundfile

        found = []
        for file in self.files:
            tick("reading")
            try:
                samples, sample_rate = soundfile.read(file, dtype="float32", always_2d=True)
            except soundfile.LibsndfileError as error:
                raise Error(f"cannot read {file}: {error}") from error
            if not len(samples):
                raise Error(f"{file} holds no sound")
            found.append(Clip(samples, sample_rate))
        return found


Side = Model | Recordings


@dataclass(frozen=True, eq=False)
class Trial:
    """One sentence by both sides, in the order in which they are heard."""

    text: str
    clips: tuple[Clip, Clip]
    order: str  # "AB" or "BA"


def side(given: str, loading: dict[str, Any], speech: dict[str, Any]) -> Side:
    """What an argument of --ab names: a recording, a folder of them, or a model.

    A model is a folder or a hub id, with ",option=value" for what it has of its own.
    """
    place, *own = [given] if Path(given).exists() else given.split(",")
    path = Path(place)
    changed = _own_options(given, own)
    if holds_model(path) or (is_hub_id(place) and not path.exists()):
        own_loading = {name: value for name, value in changed.items() if name in LOADING}
        own_speech = {name: value for name, value in changed.items() if name in SPEECH}
        return Model(place, loading | own_loading, speech | own_speech)
    if not path.exists():
        raise Error(f"there is no folder or file {place}")
    if changed:
        raise ValueError(f"{given}: recordings take no options")
    files = (path,) if path.is_file() else tuple(sorted(filter(is_recording, path.iterdir())))
    if not files:
        endings = ", ".join(ENDINGS)
        raise Error(f"{path} has neither a T3 checkpoint nor recordings ({endings})")
    return Recordings(files)


def _own_options(given: str, own: Sequence[str]) -> dict[str, Any]:
    kinds = LOADING | SPEECH
    found = {}
    for part in own:
        name, equals, value = part.partition("=")
        if not equals or name not in kinds:
            raise ValueError(f"{given}: {part!r} is not name=value with one of {', '.join(kinds)}")
        try:
            found[name] = kinds[name].plain_type(value)
        except ValueError as error:
            raise ValueError(f"{given}: {name} must be a number, not {value!r}") from error
    return found


def trials(
    one: Side, other: Side, texts: Sequence[str], tick: Tick = lambda doing: None, *, seed: int = 0
) -> list[Trial]:
    """Every text by both sides, in an order that the seed decides; levels are made equal.

    Recordings of two folders belong together by name; beside a model the texts are theirs, in the
    order of their names.
    """
    if isinstance(one, Recordings) and isinstance(other, Recordings):
        one, other, texts = _matched(one, other)
    for side in (one, other):
        if isinstance(side, Recordings) and len(side.files) != len(texts):
            raise ValueError(
                f"recordings: {len(side.files)}, texts: {len(texts)}; give the text of each with "
                "--text or -f, in the order of the recordings' names"
            )
    sides = [side.clips(texts, tick) for side in (one, other)]
    pairs = list(zip(texts, *sides, strict=True))
    if all(np.array_equal(a.samples, b.samples) for _, a, b in pairs):
        raise Error("A and B give the same samples: there is nothing to listen for")
    draws = random.Random(seed)
    draws.shuffle(pairs)
    found = []
    for text, a, b in pairs:
        a, b = _at_one_level(a, b)
        order = draws.choice(("AB", "BA"))
        found.append(Trial(text, (a, b) if order == "AB" else (b, a), order))
    return found


def _matched(one: Recordings, other: Recordings) -> tuple[Recordings, Recordings, list[str]]:
    """The recordings that both have, and what stands for their text."""
    if len(one.files) == len(other.files) == 1:
        return one, other, ["1"]
    first, second = ({file.stem: file for file in side.files} for side in (one, other))
    names = [name for name in first if name in second]
    if not names:
        raise ValueError("no recording of A has the name of one of B")
    one, other = (Recordings(tuple(files[name] for name in names)) for files in (first, second))
    return one, other, names


def _at_one_level(one: Clip, other: Clip) -> tuple[Clip, Clip]:
    """Scales the louder clip to the level of the other: listeners tend to prefer the louder one."""
    levels = [float(np.sqrt(np.mean(clip.samples**2))) for clip in (one, other)]
    target = min(levels)
    if target == 0:
        return one, other
    first, second = (
        Clip(clip.samples * np.float32(target / level), clip.sample_rate)
        for clip, level in zip((one, other), levels, strict=True)
    )
    return first, second


def write_page(path: Path, found: Sequence[Trial], names: Sequence[str], seed: int) -> None:
    """Writes the page, whole or not at all; which clip is whose cannot be read at a glance."""
    key = {"names": dict(zip("AB", names, strict=True)), "orders": [trial.order for trial in found]}
    page = {
        "seed": seed,
        "key": base64.b64encode(json.dumps(key).encode()).decode(),
        "trials": [
            {"text": trial.text, "clips": [_data_url(clip) for clip in trial.clips]}
            for trial in found
        ],
    }
    # In a script element only "<" could end the text early.
    content = json.dumps(page).replace("<", "\\u003c")
    with atomic_path(path) as partial:
        template = TEMPLATE.read_text(encoding="utf-8")
        partial.write_text(template.replace('"PAGE"', content), encoding="utf-8")


def _data_url(clip: Clip) -> str:
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, clip.samples, clip.sample_rate, format="FLAC", subtype="PCM_16")
    return f"data:audio/flac;base64,{base64.b64encode(file.getvalue()).decode()}"
