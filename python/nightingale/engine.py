"""The models of one checkpoint and the order in which callers use them."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from ._core import Error
from .alignment import best_heads
from .arguments import floats, token_ids
from .checkpoint import VOICE_ENCODER_FILES, Checkpoint
from .draft import Drafts
from .family import S3GEN_FILES
from .finite import not_finite
from .mlx_files import S3GEN, is_conversion, open_part
from .model_rules import RULES
from .option import number
from .options import LoadOptions, SpeechOptions
from .quantized_cache import load_t3
from .recording import Recording
from .text.segment import Encoded
from .torch_file import open_tensors
from .voice import Voice
from .warm_up import GpuTurn, Turn

logger = logging.getLogger(__name__)

MELS = 80
HARMONICS = 9
START_SPEECH = 6561
FRAME_SAMPLES = 480
FRAMES_PER_TOKEN = 2
GPU_CACHE_BYTES = 2 << 30  # every length of text has its own sizes, which MLX would all keep
HEAD_SIZE = 64
MOST_CALIBRATION_TOKENS = 150  # of a text that heads are found with
S3GEN_PREFIXES = {"flow": "flow.", "vocoder": "mel2wav."}  # of the tensors of its stages
KEPT_CONDITIONS = 8  # of 8 MB each at full size in float32
# Positions of the KV cache of a sentence beside the voice: text, and speech by the default of
# max_tokens.
SENTENCE_POSITIONS = 250 + 1000
SOUND_BYTES = 4 << 20  # of a sentence's mel and 30 s of sound


class Engine:
    """T3, flow, vocoder and the baking models. Callers take turns, one token or flow step each.

    Dropping what a `begin_*` or `speak` returned is all that cancelling takes.
    """

    def __init__(self, checkpoint: Checkpoint, options: LoadOptions) -> None:
        """options: with the device decided"""
        self.checkpoint = checkpoint
        if options.device == "gpu":
            _core.set_cache_limit(GPU_CACHE_BYTES)
        self.t3, unknown = load_t3(checkpoint.t3, options, checkpoint.settings_of)
        kv_bits = cache_bits(options.kv_bits, self.t3.describe()["bits"])
        self.t3.keep_cache(kv_bits, options.kv_budget or 0.0)
        _warn_of(unknown, checkpoint.t3)
        self.drafts: Drafts | None = None
        if options.draft is not None:
            self.drafts = Drafts(options.draft, self.t3, options)
            _warn_of(self.drafts.unknown, Path(options.draft))
        self.flow: _core.Flow | None = None
        self.flow_settings = checkpoint.settings.flow
        self.vocoder: _core.Vocoder | None = None
        if checkpoint.s3gen is not None:
            file = open_part(checkpoint.s3gen, S3GEN)
            self.flow, unknown = _core.Flow.load(file, options)
            self.vocoder, unknown_too = _core.Vocoder.load(file, options)
            _warn_of(sorted({*unknown, *unknown_too}), checkpoint.s3gen)
            self._model = _core.Model(
                self.t3,
                self.flow,
                self.vocoder,
                **asdict(checkpoint.settings.flow),
                cache=options.cache or 0,
            )
        self.settings = self.t3.describe()
        self.rules = RULES[self.settings["backbone"]]
        self._found_heads: list[tuple[int, int]] | None = None  # None: they were not looked for
        self._baker: _core.VoiceBaker | None = None
        self._tokenizer: _core.SpeechTokenizer | None = None
        self._conditions: dict[tuple[Voice, float], _Condition] = {}
        self._caches = options.cache is not None
        self._turn = GpuTurn() if options.device == "gpu" else Turn()

    def s3gen(self) -> tuple[_core.Flow, _core.Vocoder]:
        """Flow and vocoder, or an Error where the checkpoint has none."""
        if self.flow is None or self.vocoder is None:
            raise Error(
                f"{self.checkpoint.folder} has no S3Gen checkpoint, which makes audio of speech "
                f"tokens; expected one of {', '.join(S3GEN_FILES)}"
            )
        return self.flow, self.vocoder

    @property
    def bakes_voices(self) -> bool:
        """Whether the checkpoint has what baking a voice needs."""
        return self.flow is not None and self.checkpoint.voice_encoder is not None

    @property
    def cache_counts(self) -> dict[str, int]:
        """Of the cache of sentences: hits, misses, sentences, bytes and their limit."""
        return {} if self.flow is None else self._model.cache

    @property
    def session_bytes(self) -> int:
        """Memory that a text takes at most while it is streamed."""
        positions: int = self.settings["prompt_tokens"] + SENTENCE_POSITIONS
        return int(self.settings["position_bytes"]) * positions + SOUND_BYTES

    @property
    def speech_defaults(self) -> dict[str, Any]:
        """Values of the model's own for SpeechOptions, by name."""
        names = ("repetition_penalty", "min_p", "top_p", "top_k")
        defaults = {name: self.settings[name] for name in names}
        if not self.settings["guidance"]:
            defaults["cfg_weight"] = 0.0
        if self.flow is not None:
            defaults["steps"] = self.flow.describe()["steps"]
        return defaults

    def check_voice(self, voice: Voice) -> None:
        """A ValueError where the voice lacks what speaking needs, or was baked for other models."""
        self.rules.prompt.check(voice)
        _t3_side(voice)
        flow_side(voice)

    def speak(
        self, text_tokens: np.ndarray, voice: Voice, options: SpeechOptions, **request: Any
    ) -> _core.SpeechTokens:
        """Begins to say a text; `next_token` gives its speech tokens. options: resolved; request:
        further arguments of the core's `speak`."""
        with self._turn:
            condition = self._condition(voice, options.exaggeration)
            return self.t3.speak(
                text_tokens,
                condition.cache,
                options,
                analyser=self.settings["analyser"],
                draft=condition.draft,
                **request,
            )

    @property
    def speaks_together(self) -> bool:
        """Whether several texts can be spoken at once, without changing any."""
        on_cpu = self.settings["device"] == "cpu"
        return on_cpu and self.drafts is None and self.settings["kv_budget"] is None

    def next_token(
        self, speech: _core.SpeechTokens, ahead: Sequence[_core.SpeechTokens] = ()
    ) -> int | None:
        """The next token; where that takes a step, those `ahead` take theirs in the same pass."""
        with self._turn, self._naming_tensors():
            token = speech.next(list(ahead))
            if token is None and self.drafts is not None:
                self.drafts.count(speech.speculation)
            return token

    def tokens(self, speech: _core.SpeechTokens) -> Iterator[int]:
        """All tokens."""
        while (token := self.next_token(speech)) is not None:
            yield token

    def session(self, together: bool = False, min_tokens: int = 0) -> _core.Session:
        """What says the segments that `add` gives it, step by step."""
        self.s3gen()
        has_positions = self.follows_while_speaking or self._found_heads == []
        return _core.Session(
            self._model,
            together=together and self.speaks_together,
            analyser=self.settings["analyser"],
            min_tokens=min_tokens,
            closing_tokens=list(self.rules.closing_tokens),
            followed=None if has_positions else self._found_heads or [],
        )

    def add(
        self,
        session: _core.Session,
        encoded: Encoded,
        voice: Voice,
        options: SpeechOptions,
        silence: int,
    ) -> None:
        """Gives a session its next segment, in this voice and with these options, resolved, and
        the samples of silence after it."""
        with self._turn:
            condition = self._condition(voice, options.exaggeration)
            manner = _core.Manner(
                condition.cache, condition.draft, flow_voice(voice), options, condition.digest
            )
            session.add(manner, encoded.ids, len(encoded.words), encoded.word_of, silence)

    def sentence_sound(
        self, voice: Voice, options: SpeechOptions, **request: Any
    ) -> _core.SentenceSound:
        """What makes sound of speech tokens, chunk by chunk. request: further arguments of the
        core's."""
        self.s3gen()
        return _core.SentenceSound(self._model, flow_voice(voice), options, **request)

    def begin_chunk(self, sound: _core.SentenceSound, tokens: list[int], last: bool) -> None:
        with self._turn:
            sound.begin(tokens, last)

    def step(self, work: _core.Session | _core.SentenceSound) -> Any:
        """One token, one step of the flow, or what that completes: a chunk, or its samples."""
        with self._turn, self._naming_tensors():
            return work.step()

    def logits(
        self, text_tokens: np.ndarray, speech_tokens: np.ndarray, voice: Voice
    ) -> np.ndarray:
        with self._turn:
            cache = self._condition(voice, voice.emotion_adv).cache
            return self.t3.logits(text_tokens, speech_tokens, cache)

    def text_positions(
        self, text_tokens: np.ndarray, speech_tokens: np.ndarray, voice: Voice
    ) -> list[int]:
        """Where in the text, start and stop included, each speech token would be spoken."""
        with self._turn:
            cache = self._condition(voice, voice.emotion_adv).cache
            return self.t3.text_positions(text_tokens, speech_tokens, cache)

    @property
    def follows_while_speaking(self) -> bool:
        """Whether T3's analyser gives the text positions of speech tokens as they come."""
        return bool(self.settings["analyser"])

    @property
    def knows_heads(self) -> bool:
        """Whether heads are known that follow the text, from the files or found."""
        return self.settings["alignment"] or self._found_heads is not None

    def find_heads(self, texts: Sequence[np.ndarray], voice: Voice) -> None:
        """Finds heads that follow the text while T3 says these ones, each in text tokens."""
        options = SpeechOptions(max_tokens=MOST_CALIBRATION_TOKENS)
        options = options.resolved(self.speech_defaults | {"exaggeration": voice.emotion_adv})
        heads = [
            (layer, head)
            for layer in range(self.settings["layers"])
            for head in range(self.settings["hidden"] // HEAD_SIZE)
        ]
        spoken = []
        for text in texts:
            tokens = [t for t in self.tokens(self.speak(text, voice, options)) if t < START_SPEECH]
            if len(tokens) > 1:
                spoken.append(self._text_weights(text, tokens, voice, options, heads))
        self._found_heads = [heads[i] for i in best_heads(spoken)] if spoken else []

    def _text_weights(
        self,
        text_tokens: np.ndarray,
        spoken: Sequence[int] | np.ndarray,
        voice: Voice,
        options: SpeechOptions,
        heads: list[tuple[int, int]],
    ) -> np.ndarray:
        """What heads give to the text when each token is spoken: [heads, tokens, text]."""
        # Each token is spoken by the query of the one before it.
        queries = np.array([START_SPEECH, *spoken[:-1]], np.int32)
        with self._turn:
            cache = self._condition(voice, options.exaggeration).cache
            weights = self.t3.text_weights(text_tokens, queries, cache, heads)
        count = len(text_tokens)
        before = (weights.shape[2] - count) // 2  # the start of the text, where it has one
        return weights[:, -len(spoken) :, before : before + count]

    def mel(
        self,
        tokens: Sequence[int] | np.ndarray,
        voice: Voice,
        options: SpeechOptions,
        **request: Any,
    ) -> Generator[None, None, np.ndarray]:
        """Solves the flow, with a turn for each step; gives the new frames, [frames, 80]."""
        flow, _ = self.s3gen()
        given = (np.asarray(tokens, np.int32), *flow_side(voice), options)
        with self._turn:
            solver = flow.solve(*given, temperature=self.flow_settings.temperature, **request)
        while self.step_mel(solver):
            yield
        with self._turn:
            mel = solver.mel()
        self._check_finite(mel, "flow")
        return mel

    def step_mel(self, solver: _core.MelSolver) -> bool:
        with self._turn:
            return solver.step()

    def begin_sound(self, seed: int, sentence: int = 0, **draws: Any) -> _core.VocoderState:
        _, vocoder = self.s3gen()
        with self._turn:
            return vocoder.begin(seed=seed, sentence=sentence, **draws)

    def sound(self, state: _core.VocoderState, frames: np.ndarray, last: bool) -> np.ndarray:
        """The samples that are ready after these frames, [n, 80]."""
        _, vocoder = self.s3gen()
        with self._turn:
            samples = vocoder.feed(state, np.ascontiguousarray(frames), last=last)
        self._check_finite(samples, "vocoder")
        return samples

    def bake(self, recording: Recording) -> dict[str, Any]:
        """What the baking models make of a recording, by the names of a voice's fields."""
        prompt = self.rules.prompt
        prepared = prompt.prepared(recording)
        with self._turn:
            baker = self._voice_baker()
            fields = baker.bake(prepared.at_24k, prepared.at_16k, prompt.tokens)
        return {**fields, "prompt": prompt.name}

    def log_mel(self, samples: np.ndarray) -> np.ndarray:
        """What the speech tokenizer hears of samples at 16 kHz, 100 frames a second."""
        with self._turn:
            return self._speech_tokenizer().log_mel(samples)

    def recording_tokens(self, log_mel: np.ndarray, loudest: float) -> np.ndarray:
        """The speech tokens of a part of a recording, 30 s at most. loudest: of the whole."""
        with self._turn:
            return self._speech_tokenizer().tokens(np.ascontiguousarray(log_mel), loudest)

    @contextmanager
    def _naming_tensors(self) -> Iterator[None]:
        """Adds to an error of NaN or infinity which tensors hold such values."""
        try:
            yield
        except _core.NotFiniteError as error:
            raise Error(self._not_finite(str(error))) from None

    def _check_finite(self, values: np.ndarray, stage: str) -> None:
        """An Error where a stage gave NaN or infinity."""
        if not np.isfinite(values).all():
            raise Error(self._not_finite(stage))

    def _not_finite(self, stage: str) -> str:
        if stage in S3GEN_PREFIXES and self.checkpoint.s3gen is not None:
            return not_finite(stage, self.checkpoint.s3gen, S3GEN_PREFIXES[stage])
        return not_finite(stage, self.checkpoint.t3, "")

    def _voice_baker(self) -> _core.VoiceBaker:
        """Loaded when first asked for: few programs bake, and it is a quarter of the weights."""
        if self._baker is None:
            self.s3gen()
            self._check_hears()
            folder, s3gen = self.checkpoint.folder, self.checkpoint.s3gen
            encoder = self.checkpoint.voice_encoder
            if s3gen is None or encoder is None:
                raise Error(
                    f"{folder} has no voice encoder, which baking a voice needs; expected one of "
                    + ", ".join(VOICE_ENCODER_FILES)
                )
            self._baker, unknown = _core.VoiceBaker.load(
                open_tensors(s3gen), open_tensors(encoder), self._speech_tokenizer()
            )
            _warn_of(unknown, folder)
        return self._baker

    def _speech_tokenizer(self) -> _core.SpeechTokenizer:
        """Loaded when first asked for, as baking is."""
        if self._tokenizer is None:
            self.s3gen()
            self._check_hears()
            path = self.checkpoint.s3gen
            assert path is not None
            self._tokenizer, unknown = _core.SpeechTokenizer.load(open_tensors(path))
            _warn_of(unknown, path)
        return self._tokenizer

    def _check_hears(self) -> None:
        """An Error where the checkpoint has no tokenizer of recordings."""
        path = self.checkpoint.s3gen
        if path is not None and is_conversion(path):
            raise Error(
                f"{path} is a conversion for MLX, which has no tokenizer of recordings: bake "
                "voices and convert recordings with the official files"
            )

    def _condition(self, voice: Voice, emotion: float | None) -> _Condition:
        """What T3 makes of a voice, kept for the voices used last."""
        emotion = number("emotion_adv", emotion)
        key = (voice, emotion)
        if key not in self._conditions:
            self.rules.prompt.check(voice)
            side = (*_t3_side(voice), emotion)
            self._conditions[key] = _Condition(
                self.t3.condition(*side),
                self.drafts.in_voice(*side) if self.drafts else None,
                voice.digest if self._caches else "",
            )
            if len(self._conditions) > KEPT_CONDITIONS:
                del self._conditions[next(iter(self._conditions))]
        return self._conditions[key]


def cache_bits(kv_bits: int | None, weight_bits: int | None) -> int:
    """Of T3's KV cache, 0 for floats: quantized weights have a cache of 8 bits unless told."""
    if kv_bits is not None:
        return kv_bits
    return 0 if weight_bits is None else 8


@dataclass(frozen=True)
class _Condition:
    """What T3 makes of a voice, and what proposes tokens in it."""

    cache: _core.KvCache
    draft: _core.Draft | None
    digest: str  # of the voice, for the cache of sentences; empty where there is none


def _warn_of(unknown: list[str], path: Path) -> None:
    for name in unknown:
        logger.warning("%s: unknown tensor %s is not used", path.name, name)


def flow_side(voice: Voice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A voice's prompt tokens, prompt mel [frames, 80] and x-vector as the core takes them."""
    for name in ("prompt_token", "prompt_feat", "embedding"):
        if getattr(voice, name) is None:
            raise ValueError(f"the voice has no {name}, which synthesis needs: bake it again")
    return (
        token_ids("the voice's prompt_token", voice.prompt_token),
        floats("the voice's prompt_feat", voice.prompt_feat, (None, MELS)),
        floats("the voice's embedding", voice.embedding, (None,)),
    )


def flow_voice(voice: Voice) -> _core.FlowVoice:
    return _core.FlowVoice(*flow_side(voice))


def _t3_side(voice: Voice) -> tuple[np.ndarray, np.ndarray | None]:
    """A voice's speaker embedding and prompt tokens as the core takes them."""
    speaker = floats("the voice's speaker_emb", voice.speaker_emb, (None,))
    tokens = voice.cond_prompt_speech_tokens
    if tokens is not None:
        tokens = token_ids("the voice's cond_prompt_speech_tokens", tokens)
    return speaker, tokens
