"""A loaded model and what it can do."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _core
from ._core import Error
from .alignment import CALIBRATION_TEXTS, find_heads
from .audio import Audio
from .checkpoint import find_checkpoint
from .chunks import Chunk, warn_of, whole_audio, with_warnings, without_steps
from .conversion import Converter, conversion_options, whole
from .engine import Engine
from .long_recording import LongRecording
from .model_rules import IgnoredOptionWarning, ignored_text
from .model_settings import SETTINGS_FILE
from .native_voices import voice_titled
from .option import counted, shown
from .options import SPEEDS, LoadOptions, SpeechOptions
from .recording import Recording, read_recording
from .sound_file import Source
from .speaking_together import batch_requests, in_threads, in_turns
from .speech import Manner, Speaker
from .stages import Stages
from .text import Segment, open_tokenizer, prepare
from .text.detection import detect, is_auto
from .text.lexicon import Lexicon, LexiconSource
from .text.markup import without_markup
from .text.segment import PLAIN, Style
from .text.tokenized import tokenized_segments
from .voice import Voice
from .warm_up import WarmUp

if TYPE_CHECKING:
    from typing_extensions import TypeIs, Unpack

    from ._overrides import ConversionOverrides, ConversionStreamOverrides, SpeechOverrides

logger = logging.getLogger(__name__)

FindVoice = Callable[[str], "Voice | str | None"]  # what a name stands for; None: the default


class TTS(Stages):
    """A loaded checkpoint. Calls from several threads take turns, token by token."""

    def __init__(self, folder: Path, options: LoadOptions) -> None:
        self._checkpoint = files = find_checkpoint(folder, options.variant)
        self._loaded = Engine(files, options)
        self._tokenizer = open_tokenizer(files)
        self._check_vocabulary()
        voices = ({} if files.voice is None else {"default": files.voice}) | files.voices
        self._voices = {name: Voice.load(file) for name, file in voices.items()}
        self._check_voices()
        self._warm_up: WarmUp | None = None
        if options.device == "gpu" and self._loaded.flow is not None and "default" in self._voices:
            self._warm_up = WarmUp(self._loaded, self._voices["default"])
        prepare("Ready.")  # loads the rules now, and not before the first sound

    def _check_vocabulary(self) -> None:
        """An Error where tokenizer and T3 are of different models."""
        t3, tokenizer = self._checkpoint.t3.name, self._checkpoint.tokenizer
        known, used = self._loaded.settings["text_vocabulary"], self._tokenizer.vocabulary
        if used > known:
            raise Error(
                f"{tokenizer} has {used} tokens, but {t3} knows {known}: they are of different "
                "models"
            )

    def _check_voices(self) -> None:
        """An Error where the settings name a voice that is not there."""
        for language, name in self._checkpoint.settings.voices.items():
            if name not in self._voices:
                raise Error(
                    f"{self._checkpoint.folder / SETTINGS_FILE}: voices names {name!r} for "
                    f"{language}, but the folder has {', '.join(self._voices) or 'none'}"
                )

    @property
    def _engine(self) -> Engine:
        """For work: the warm-up ends."""
        if self._warm_up is not None:
            self._warm_up.end()
            self._warm_up = None
        return self._loaded

    def __repr__(self) -> str:
        files, device = self._checkpoint, self._loaded.settings["device"]
        voices = counted(len(self._voices), "voice")
        languages = counted(len(self._tokenizer.languages), "language")
        return f"TTS({files.family.name}, {str(files.folder)!r}, {device}, {voices}, {languages})"

    @property
    def languages(self) -> dict[str, str]:
        """Codes and names of the languages this model speaks."""
        return dict(self._tokenizer.languages)

    @property
    def voices(self) -> list[str]:
        """Names of the voices that come with the model."""
        return list(self._voices)

    @property
    def info(self) -> dict[str, Any]:
        """What was loaded and where it runs."""
        engine = self._loaded
        info = {
            "model": str(self._checkpoint.folder),
            "family": self._checkpoint.family.name,
            "device": engine.settings["device"],
            "threads": _core.threads(),
            "mlx": _core.mlx_version(),
            "bakes_voices": engine.bakes_voices,
            "language_voices": dict(self._checkpoint.settings.voices),
            "session_bytes": engine.session_bytes,
            "cache": engine.cache_counts,
            "ignored_options": list(engine.rules.ignored_options),
            "sound_tags": list(self._tokenizer.tags.sounds),
            "style_tags": list(self._tokenizer.tags.styles),
            "defaults": SpeechOptions().resolved(engine.speech_defaults).of_model(),
            "t3": dict(engine.settings),
        }
        if engine.drafts is not None:
            info["draft"] = engine.drafts.info
        if engine.flow is not None and engine.vocoder is not None:
            info["flow"] = engine.flow.describe() | asdict(engine.flow_settings)
            info["vocoder"] = {"weight_bytes": engine.vocoder.weight_bytes}
        return info

    def tokenize(self, text: str, language: str = "en") -> np.ndarray:
        """Text tokens, int32: punctuation normalised, language tag in, no start and stop."""
        return self._tokenizer.encode(text, self._language(text, language))

    def prepare(
        self,
        text: str,
        language: str = "en",
        *,
        lexicon: LexiconSource | None = None,
        markup: str | None = None,
        find_voice: FindVoice | None = None,
        check: Callable[[], None] | None = None,
    ) -> list[Segment]:
        """The sentences that `generate` and `stream` speak, with their pauses.

        lexicon: respellings of words. markup: how the text is written; None: SSML where it begins
        with <speak>, else plain. find_voice: gives the voice that a name in SSML stands for, or
        raises ValueError; None knows the model's own. check: is called many times on the way, and
        ends the work where it raises.
        """
        return tokenized_segments(
            self._tokenizer,
            text,
            self._language(text, language, markup),
            lexicon=Lexicon.of(lexicon),
            markup=markup,
            find_voice=find_voice or self._own_voice,
            check=check,
        )

    def generate(
        self,
        text: str,
        options: SpeechOptions | None = None,
        *,
        find_voice: FindVoice | None = None,
        **overrides: Unpack[SpeechOverrides],
    ) -> Audio:
        """Speaks a text of any length, sentence by sentence, each solved whole.

        overrides: fields of SpeechOptions, such as voice="Anna" or seed=7; they win over `options`.
        find_voice: as `prepare` takes it. The same text, voice and options give the same audio.
        """
        options = SpeechOptions.merged("generate", options, overrides)
        spoken = self._speak(text, replace(options, first_chunk=None), find_voice, together=True)
        chunks = [chunk for chunk in spoken if chunk is not None]
        audio = whole_audio(chunks, text, options)
        warn_of(chunks[0])
        return audio

    def generate_batch(
        self,
        texts: Sequence[str | tuple[str, SpeechOverrides]],
        options: SpeechOptions | None = None,
        *,
        find_voice: FindVoice | None = None,
        **overrides: Unpack[SpeechOverrides],
    ) -> list[Audio]:
        """Speaks several texts at once; each has the tokens and samples of `generate`.

        texts: strings, or pairs of a string and overrides of its own, which win over the others.
        """
        requests = batch_requests(texts, options, overrides)
        made: dict[int, Audio] = {}
        for number, chunks in in_turns(
            partial(self._speak, text, replace(own, first_chunk=None), find_voice, together=True)
            for text, own in requests
        ):
            if isinstance(chunks, Exception):
                raise chunks
            made[number] = whole_audio(chunks, *requests[number])
            warn_of(chunks[0])
        return [made[number] for number in range(len(requests))]

    def stream(
        self,
        text: str,
        options: SpeechOptions | None = None,
        *,
        find_voice: FindVoice | None = None,
        **overrides: Unpack[SpeechOverrides],
    ) -> Generator[Chunk, None, None]:
        """Speaks a text as `generate` does, and yields the sound while it is made.

        Tokens and number of samples are those of `generate`. Closing the iterator ends the work.
        """
        options = SpeechOptions.merged("stream", options, overrides)
        return without_steps(self._speak(text, options, find_voice))

    def astream(
        self,
        text: str,
        options: SpeechOptions | None = None,
        *,
        find_voice: FindVoice | None = None,
        **overrides: Unpack[SpeechOverrides],
    ) -> AsyncGenerator[Chunk, None]:
        """`stream` for asyncio: the work is done in threads of the event loop's executor.

        Closing the iterator, or cancelling who waits for it, ends the work.
        """
        options = SpeechOptions.merged("astream", options, overrides)
        return in_threads(with_warnings(self._speak(text, options, find_voice)))

    def stepwise(
        self,
        text: str | list[Segment],
        options: SpeechOptions | None = None,
        **overrides: Unpack[SpeechOverrides],
    ) -> Iterator[Chunk | None]:
        """`stream` that also yields None after every token and flow step.

        Whoever shares a model among many can turn to another there, or close the iterator. text:
        may be what `prepare` made of it, perhaps in another thread.
        """
        return self._speak(text, SpeechOptions.merged("stepwise", options, overrides))

    def speech_tokens(
        self, text: str, options: SpeechOptions | None = None, **overrides: Unpack[SpeechOverrides]
    ) -> np.ndarray:
        """The speech tokens of one segment of text, int32: T3 alone."""
        options = SpeechOptions.merged("speech_tokens", options, overrides)
        return np.fromiter(self.iter_speech_tokens(text, options), dtype=np.int32)

    def iter_speech_tokens(
        self, text: str, options: SpeechOptions | None = None, **overrides: Unpack[SpeechOverrides]
    ) -> Iterator[int]:
        """Yields speech tokens as they are drawn; closing the iterator ends the work.

        Arguments are checked at the call.
        """
        options = SpeechOptions.merged("iter_speech_tokens", options, overrides)
        if options.markup is not None:
            raise ValueError(
                f"speech tokens are those of one plain segment, not of {options.markup}"
            )
        language = self._language(text, options.language)
        voice = self._voice(options.voice, language)
        if isinstance(text, str) and (lexicon := Lexicon.of(options.lexicon)) is not None:
            text = lexicon.applied(text, language)
        text_tokens = self.tokenize(text, language)
        if ignored := self._loaded.rules.ignored(options):
            warnings.warn(ignored_text(ignored), IgnoredOptionWarning, stacklevel=2)
        options = self._resolved(options, voice)
        return self._engine.tokens(self._engine.speak(text_tokens, voice, options))

    def bake_voice(
        self,
        source: Source | Recording,
        sample_rate: int | None = None,
        *,
        exaggeration: float = 0.5,
    ) -> Voice:
        """A voice of a recording: a path, an open file, or samples with their rate.

        One speaker, 1 s at least, 10 s to sound alike; of long recordings the first 60 s are used.
        docs/reference/voice-files.md says what is refused. exaggeration is kept in the voice and
        can be changed.
        """
        # One that is a Recording was read before, perhaps in another process.
        recording = source if isinstance(source, Recording) else read_recording(source, sample_rate)
        return Voice(**self._engine.bake(recording)).with_exaggeration(exaggeration)

    def convert(
        self,
        source: Source | LongRecording,
        options: SpeechOptions | None = None,
        *,
        sample_rate: int | None = None,
        **overrides: Unpack[ConversionOverrides],
    ) -> Audio:
        """What is said in a recording of any length, in another voice, with the recording's timing.

        source: a path, an open file, or samples with their rate. overrides: voice, seed, speed and
        steps. docs/guide/voices.md says what long recordings are divided into.
        """
        chosen = conversion_options("convert", options, overrides)
        return whole(self.convert_stepwise(source, replace(chosen, first_chunk=None), sample_rate))

    def convert_stream(
        self,
        source: Source | LongRecording,
        options: SpeechOptions | None = None,
        *,
        sample_rate: int | None = None,
        **overrides: Unpack[ConversionStreamOverrides],
    ) -> Generator[Chunk, None, None]:
        """Converts a recording as `convert` does, and yields the sound while it is made.

        first_chunk=None gives the samples of `convert`, in chunks of 20 s. Closing the iterator
        ends the work.
        """
        chosen = conversion_options("convert_stream", options, overrides, chunks=True)
        return without_steps(self.convert_stepwise(source, chosen, sample_rate))

    def convert_stepwise(
        self,
        source: Source | LongRecording,
        options: SpeechOptions,
        sample_rate: int | None = None,
    ) -> Iterator[Chunk | None]:
        """`convert_stream` that also yields None after every part of the work, as `stepwise`."""
        recording = LongRecording.of(source, sample_rate)
        voice = self._voice(options.voice)
        return Converter(self._engine, recording, voice, self._resolved(options, voice)).run()

    def _speak(
        self,
        text: str | list[Segment],
        options: SpeechOptions,
        find_voice: FindVoice | None = None,
        together: bool = False,
    ) -> Iterator[Chunk | None]:
        """Chunks, and None after every token and flow step; arguments are checked at the call."""
        started = time.perf_counter()
        self._loaded.s3gen()
        language = self._language(text, options.language, options.markup)
        options = replace(options, language=language)
        voice = self._voice(options.voice, language)
        self._loaded.check_voice(voice)
        if _is_prepared(text):
            segments = text
        else:
            segments = self.prepare(
                text,
                language,
                lexicon=options.lexicon,
                markup=options.markup,
                find_voice=find_voice,
            )
        self._find_heads(voice)
        styles = {segment.style for segment in segments} - {PLAIN}
        manners = {style: self._manner(style, voice, options) for style in styles}
        return Speaker(
            self._engine,
            segments,
            voice,
            self._resolved(options, voice),
            started,
            together,
            ignored=self._loaded.rules.ignored(options),
            manners=manners,
        ).run()

    def _find_heads(self, voice: Voice) -> None:
        """Finds what gives the words' times, once, where the files do not say it."""
        engine = self._loaded
        if engine.follows_while_speaking or engine.knows_heads:
            return
        language = "en" if "en" in self.languages else next(iter(self.languages))
        texts = [self._tokenizer.encode(text, language) for text in CALIBRATION_TEXTS]
        default = self._voices.get("default", voice)
        engine.found_heads = find_heads(self._engine, texts, default)

    def _language(self, text: str | list[Segment], language: str, markup: str | None = None) -> str:
        """The code of a language of this model: the text's own where it is to be detected."""
        if _is_prepared(text):
            if not is_auto(language):
                return self._tokenizer.known_language(language)
            read = (segment.encoded.language for segment in text if segment.encoded is not None)
            return next(read, "") or detect("", self.languages)
        if not isinstance(text, str):
            raise ValueError(f"text must be a string, not {type(text).__name__}")
        if not is_auto(language):
            return self._tokenizer.known_language(language)
        return detect(without_markup(text, "", markup), self.languages)

    def _manner(self, style: Style, voice: Voice, options: SpeechOptions) -> Manner:
        """How what has a style is said, where the rest is said with this voice and options."""
        if style.voice is not None:
            voice = self._voice(style.voice)
            self._loaded.check_voice(voice)
        slowest, fastest = SPEEDS
        speed = min(max(options.speed * style.rate, slowest), fastest)
        language = self._tokenizer.known_language(style.language or options.language)
        return Manner(
            voice, self._resolved(replace(options, language=language, speed=speed), voice)
        )

    def _resolved(self, options: SpeechOptions, voice: Voice) -> SpeechOptions:
        """With the values of the model and the voice where none was given."""
        defaults = self._loaded.speech_defaults | {"exaggeration": voice.emotion_adv}
        return self._loaded.rules.resolved(options, defaults)

    def _own_voice(self, name: str) -> Voice:
        """A voice of the model by its name or title, never by a path."""
        found = name if name in self._voices else voice_titled(name, self._voices)
        if found is not None:
            return self._voices[found]
        known = ", ".join(self._voices) or "none"
        raise ValueError(f"unknown voice {shown(name)}: the model has {known}")

    def _voice(self, voice: Voice | str | Path | None, language: str | None = None) -> Voice:
        """language: whose own default is taken where no voice is named"""
        if isinstance(voice, Voice):
            return voice
        if voice is None:
            native = self._checkpoint.settings.voices.get(language or "")
            if native is not None:
                return self._voices[native]
            if "default" not in self._voices:
                raise ValueError(
                    f"{self._checkpoint.folder} has no voice of its own; name a voice or the "
                    "path of a voice file"
                )
            return self._voices["default"]
        if not isinstance(voice, (str, Path)):
            raise ValueError(f"voice must be a Voice, a name or a path, not {shown(voice)}")
        if str(voice) in self._voices:
            return self._voices[str(voice)]
        if os.path.isfile(voice):  # Path.is_file raises for a name that is too long
            return Voice.load(voice)
        if (titled := voice_titled(str(voice), self._voices)) is not None:
            return self._voices[titled]
        known = ", ".join(self._voices) or "none"
        raise ValueError(
            f"unknown voice {shown(str(voice))}: not a file, and the model has {known}"
        )


def _is_prepared(text: Any) -> TypeIs[list[Segment]]:
    """Whether `TTS.prepare` gave it, which tokenises it too."""
    return isinstance(text, list) and all(
        isinstance(part, Segment) and (part.encoded is not None or not part.text) for part in text
    )
